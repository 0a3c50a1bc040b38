package hub_test

import (
	"context"
	"testing"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/repository"
)

func BenchmarkWriteBody(b *testing.B) {
	const n = 51_200 // n is the maximum number of events in a bundle
	for _, bc := range []struct {
		name    string
		content domain.ContentMode
		fill    func(s *shelf)
	}{
		{"manifest", domain.Manifest, func(s *shelf) {
			for range n {
				s.addEvent(repository.Section{})
			}
		}},
		{"manifest with payloads", domain.Manifest, func(s *shelf) { s.addAdjacent(n, 1000) }},
		{"inline", domain.Inline, func(s *shelf) { s.addAdjacent(n, 1000) }},
	} {
		b.Run(bc.name, func(b *testing.B) {
			s := newShelf(b)
			s.content = bc.content
			bc.fill(s)
			peeked := s.newPeeked()
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

// BenchmarkOpen repeatedly opens the largest possible bundle over a store in memory. It measures the time that the hub
// needs to fill the bundle and to compute the digest.
func BenchmarkOpen(b *testing.B) {
	s := newShelf(b)
	s.content = domain.Manifest
	for range 51_200 {
		s.addEvent(repository.Section{})
	}
	of := s.newPeeked().Bundle
	s.replaceCalls(replacedStore{
		next: func(context.Context, domain.ActorID, []domain.Group) (repository.Next, error) {
			return repository.Next{Run: cannedRun{of, s.events}}, nil
		},
		add: func(_ context.Context, bundle domain.Bundle, _ repository.Run) (domain.Bundle, error) {
			return bundle, nil
		},
	}, hub.Options{})
	b.ReportAllocs()
	for b.Loop() {
		if n := s.peekBundle().Count; n != 51_200 {
			b.Fatal(n)
		}
	}
}
