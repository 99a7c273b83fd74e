"""The fuzzer: it calls everything public with hostile arguments, drawn at random from a seed."""
