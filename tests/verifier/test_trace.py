"""Whose kernels ran on the device, told by their names."""

from __future__ import annotations

import pytest

from verifier.referee.trace import Origin, Trace, origin_of
from verifier.subject import DeviceKernel


@pytest.mark.parametrize(
    ("name", "origin"),
    [
        ("softmax_kernel", Origin.OWN),
        ("void my_gemm<float>(float const*, int)", Origin.OWN),
        ("void at::native::vectorized_kernel<4, at::native::FillFunctor>", Origin.TORCH),
        ("void at_cuda_detail::cub::DeviceReduceKernel<>", Origin.TORCH),
        ("nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NNT", Origin.LIBRARY),
        ("sm80_xmma_gemm_f32f32_f32f32_f32_nn_n", Origin.LIBRARY),
        ("ampere_sgemm_128x64_nn", Origin.LIBRARY),
        ("void cublasLt::splitKreduce_kernel<32, 16, int>", Origin.LIBRARY),
        ("void cudnn::bn_fw_tr_1C11_kernel_NCHW<float>", Origin.LIBRARY),
        ("triton_poi_fused_relu_0", Origin.COMPILED),
        ("triton_red_fused__softmax_1", Origin.COMPILED),
        ("Memcpy DtoD (Device -> Device)", Origin.MEMORY),
        ("Memset (Device)", Origin.MEMORY),
    ],
)
def test_a_name_tells_the_origin(name: str, origin: Origin) -> None:
    assert origin_of(name, ()) is origin


def test_what_was_launched_is_its_own_whatever_its_name() -> None:
    assert origin_of("cublas_like_kernel", {"cublas_like_kernel"}) is Origin.OWN


def test_shares_add_up_over_time_not_over_launches() -> None:
    trace = Trace([DeviceKernel("mine", 3e-6), DeviceKernel("ampere_sgemm_x", 1e-6)], {"mine"})
    assert trace.share(Origin.OWN) == pytest.approx(0.75)
    assert str(trace) == "time on the device: own 75%, library 25%"


def test_nothing_ran_is_no_share_of_anything() -> None:
    assert Trace([], ()).share(Origin.OWN) == 0
