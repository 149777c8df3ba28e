"""Reports as compute-sanitizer 2025.3 and later write them, made by hand."""

from typing import Final

OUT_OF_BOUNDS: Final = """\
  <record>
    <kind>Precise</kind>
    <level>Error</level>
    <who>
      <threadIdx><x>116</x><y>0</y><z>0</z></threadIdx>
      <blockIdx><x>3</x><y>0</y><z>0</z></blockIdx>
    </who>
    <what>
      <text>Invalid __global__ read of size 8 bytes is out of bounds</text>
      <space>__global__</space>
      <size>8</size>
      <direction>read</direction>
      <error>out of bounds</error>
      <address>0x7f00000fa0</address>
    </what>
    <where>
      <func>rows&lt;float&gt;</func>
      <path>/scratch/kernel/kernel.py</path>
      <line>7</line>
      <pc>0xb0</pc>
    </where>
    <hostStack>
      <saveLocation>kernel launch time</saveLocation>
      <frame><func>launch</func><pc>0x1</pc><module>/scratch/__triton_launcher.so</module></frame>
    </hostStack>
  </record>
"""


def report(*records: str) -> str:
    """A whole report."""
    head = '<?xml version="1.0" encoding="utf-8"?>\n'
    body = "".join(records)
    whole = f"<ComputeSanitizerOutput>\n{body}</ComputeSanitizerOutput>\n"
    return head + (whole if records else "<ComputeSanitizerOutput/>\n")


def summary(errors: int) -> str:
    """The text beside it."""
    return f"========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: {errors} errors\n"
