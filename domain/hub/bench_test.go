package hub_test

import (
	"testing"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

func BenchmarkWriteBody(b *testing.B) {
	const n = 51_200 // the most that a bundle holds
	for _, bc := range []struct {
		name    string
		content domain.ContentMode
		fill    func(s *shelf)
	}{
		{"manifest", domain.Manifest, func(s *shelf) {
			for range n {
				s.add(repository.Section{})
			}
		}},
		{"manifest with payloads", domain.Manifest, func(s *shelf) { s.fill(n, 1000) }},
		{"inline", domain.Inline, func(s *shelf) { s.fill(n, 1000) }},
	} {
		b.Run(bc.name, func(b *testing.B) {
			s := newShelf(b)
			s.content = bc.content
			bc.fill(s)
			peeked := s.peeked()
			var written counter
			b.ReportAllocs()
			for b.Loop() {
				written = 0
				if err := writeBody(s.ctx, peeked, &written); err != nil {
					b.Fatal(err)
				}
			}
			b.SetBytes(int64(written))
		})
	}
}
