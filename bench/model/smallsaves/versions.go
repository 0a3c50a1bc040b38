package smallsaves

import "iter"

// maxVersions limits the older versions of a partition that a read may return.
const maxVersions = 2

// versions holds the current and the earlier contents of a partition.
type versions[T comparable] struct {
	current T
	older   [maxVersions]T // the newest first
	n       uint8
}

// write replaces the content. It retains older contents, at most keep of them.
func (v *versions[T]) write(t T, keep int) {
	if keep > 0 {
		copy(v.older[1:keep], v.older[:keep-1])
		v.older[0] = v.current
		v.n = min(v.n+1, uint8(keep)) //nolint:gosec // keep is at most maxVersions
	}
	v.current = t
}

// dropOlder drops the older contents.
func (v *versions[T]) dropOlder() {
	v.older, v.n = [maxVersions]T{}, 0
}

// reads yields the contents that a read may return, with the number of stale reads
// that each needs: the current content, and the distinct older ones if budget allows a
// stale read.
func (v *versions[T]) reads(budget uint8) iter.Seq2[*T, uint8] {
	return func(yield func(*T, uint8) bool) {
		if !yield(&v.current, 0) || budget == 0 {
			return
		}
		for i := range v.older[:v.n] {
			if v.isRepeated(i) {
				continue
			}
			if !yield(&v.older[i], 1) {
				return
			}
		}
	}
}

// isRepeated reports whether older[i] equals a newer content.
func (v *versions[T]) isRepeated(i int) bool {
	if v.older[i] == v.current {
		return true
	}
	for j := range v.older[:i] {
		if v.older[i] == v.older[j] {
			return true
		}
	}
	return false
}
