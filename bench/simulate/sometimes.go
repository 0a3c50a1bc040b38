package simulate

// Sometimes counts how often states were reached that are rare, and that the
// protocols are made for. A campaign that never reaches one of them has proved
// nothing about it, and fails.
type sometimes map[string]int

func (s sometimes) reached(what string) { s[what]++ }
