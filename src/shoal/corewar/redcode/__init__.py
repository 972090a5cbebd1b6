"""Redcode: assembling sources into warriors, and writing warriors down again."""

from shoal.corewar.redcode.assembler import Assembly, assemble, assemble_with_warnings
from shoal.corewar.redcode.listing import disassemble, listing

__all__ = ["Assembly", "assemble", "assemble_with_warnings", "disassemble", "listing"]
