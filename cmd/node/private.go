package node

// The modes of all that a node keeps: only the user that it runs as reads and writes it.
const (
	privateFile   = 0o600
	privateFolder = 0o700
)
