"""The proof by chaos: everything is killed, stopped and lied to while broadcasts run; then book and rows are asked."""
