"""Reports as compute-sanitizer 2025.3 and later write them, made by hand."""

from typing import Final

TRITON: Final = "/scratch/kernel/triton/ABC/__triton_launcher.cpython-312-x86_64-linux-gnu.so"
CUDART: Final = "/site-packages/nvidia/cu13/lib/libcudart.so.13"
TORCH: Final = "/site-packages/torch/lib/libtorch_cuda.so"


def report(*records: str) -> str:
    """A whole report."""
    head = '<?xml version="1.0" encoding="utf-8"?>\n'
    body = "".join(records)
    whole = f"<ComputeSanitizerOutput>\n{body}</ComputeSanitizerOutput>\n"
    return head + (whole if records else "<ComputeSanitizerOutput/>\n")


def summary(errors: int, unprinted: int = 0) -> str:
    """The text beside it."""
    lines = ["COMPUTE-SANITIZER", f"ERROR SUMMARY: {errors} error{'s' * (errors != 1)}"]
    if unprinted:
        lines += [f"ERROR SUMMARY: {unprinted} errors were not printed. Use --print-limit option"]
    return "".join(f"========= {line}\n" for line in lines)


def access(name: str, *modules: str, thread: int = 0, line: int = 7, tool: str = "memcheck") -> str:
    """One access that a tool has something against, launched through these modules."""
    frames = "".join(f"<frame><pc>0x1</pc><module>{one}</module></frame>" for one in modules)
    frames += "<frame><func>run</func><path>/scratch/kernel/kernel.py</path><line>20</line></frame>"
    return f"""\
  <record>
    {KINDS[tool]}
    <who>
      <threadIdx><x>{thread}</x><y>0</y><z>0</z></threadIdx>
      <blockIdx><x>3</x><y>0</y><z>0</z></blockIdx>
    </who>
    <what>{WHATS[tool]}<address>0x7f0000000fa{thread % 10}</address></what>
    <where>
      <func>{name}</func><path>/scratch/kernel/kernel.py</path><line>{line}</line><pc>0xb0</pc>
    </where>
    <hostStack><saveLocation>kernel launch time</saveLocation>{frames}</hostStack>
  </record>
"""


KINDS: Final = {
    "memcheck": "<kind>Precise</kind><level>Error</level>",
    "initcheck": "<kind>Initcheck</kind>",
    "synccheck": "<kind>Synccheck</kind>",
}
WHATS: Final = {
    "memcheck": "<text>Invalid __global__ read of size 8 bytes is out of bounds</text>"
    "<space>__global__</space><size>8</size><error>out of bounds</error>",
    "initcheck": "<text>Uninitialized __global__ memory read of size 4 bytes</text>",
    "synccheck": "<text>Barrier error</text><type>Divergent thread(s) in warp</type>",
}


def copy(error: int, size: int) -> str:
    """A copy to the host by the driver, of memory that nobody wrote from ``error`` on."""
    start = 139859712811008
    return f"""\
  <record>
    <kind>InitcheckApiError</kind><level>Error</level>
    <what>
      <text>Host API uninitialized memory access</text>
      <accessAddress>{start}</accessAddress><accessSize>{size}</accessSize>
      <errorAddress>{start + error}</errorAddress>
    </what>
    <hostStack>
      <saveLocation>error</saveLocation>
      <frame><func>_read</func><path>/kernelhub/deep_host.py</path><line>20</line></frame>
    </hostStack>
  </record>
"""


def race(name: str) -> str:
    """A race, of which the tool gives no host stack."""
    where = f"<where><func>{name}</func><path>/scratch/kernel.cu</path><line>41</line></where>"
    return f"""\
  <record>
    <kind>Analysis</kind><level>Error</level>
    <what>
      <text>Race condition</text>
      <source><direction>Write</direction>{where}</source>
      <destination><direction>Read</direction>{where}<count>4000</count></destination>
    </what>
  </record>
"""


def race_summary(hazards: int) -> str:
    """The text beside them, which has a word of its own for each race."""
    return (
        "========= Error: Race reported between Write access at rows+0xf0\n"
        f"========= RACECHECK SUMMARY: {hazards} hazards displayed ({hazards} errors, 0 warnings)\n"
    )
