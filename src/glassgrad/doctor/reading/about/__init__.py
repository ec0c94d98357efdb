"""The rules that read scripts, by family: each yields the places where a program shows a fault."""
