// Row softmax: one block a row.
// @launch softmax<T><<<M, THREADS>>>(x, y, N)
constexpr int THREADS = 256;

template <typename V>
__device__ V reduce(V value, bool largest) {
    __shared__ V parts[THREADS];
    parts[threadIdx.x] = value;
    for (int step = THREADS / 2; step > 0; step /= 2) {
        __syncthreads();
        if (threadIdx.x < step) {
            V a = parts[threadIdx.x], b = parts[threadIdx.x + step];
            parts[threadIdx.x] = !largest ? a + b : (a != a || a > b) ? a : b;
        }
    }
    __syncthreads();
    V all = parts[0];
    __syncthreads();
    return all;
}

template <typename E>
__global__ void softmax(const E* x, E* out, int n) {
    const E* row = x + (long long)blockIdx.x * n;
    float most = -INFINITY, sum = 0.0f;
    for (int i = threadIdx.x; i < n; i += THREADS) {
        float value = float(row[i]);
        most = (value != value || value > most) ? value : most;
    }
    most = reduce(most, true);
    for (int i = threadIdx.x; i < n; i += THREADS) sum += expf(float(row[i]) - most);
    sum = reduce(sum, false);
    for (int i = threadIdx.x; i < n; i += THREADS)
        out[(long long)blockIdx.x * n + i] = E(expf(float(row[i]) - most) / sum);
}
