"""The rules that read scripts, by family. Each yields the places where a program has a fault."""
