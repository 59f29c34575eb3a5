"""What torch has in files of other names (activation.py, rnn.py, container.py, loss.py), which import it from here."""
