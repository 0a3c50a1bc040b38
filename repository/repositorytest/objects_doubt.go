package repositorytest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

var doubtRules = []objectRule{
	{"the result of an event says that its object is in doubt, and of one that settles it that it is not", func(f *objectFixture) {
		at := time.Now()
		event := func(text, eTag string) domain.ObjectEvent {
			sequencer, err := domain.ParseSequencer(domain.OpaqueSequencer, text)
			require.NoError(f, err)
			return domain.ObjectEvent{Type: domain.ObjectCreated, Sequencer: sequencer, Time: at, ObjectFacts: domain.ObjectFacts{ETag: eTag}}
		}
		ingest := func(e domain.ObjectEvent) repository.ObjectResult {
			results, err := f.Ingest(f.ctx, []repository.ObjectReport{{Name: f.name, ObjectEvent: e}})
			require.NoError(f, err)
			require.NoError(f, results[0].Err)
			return results[0]
		}
		require.Equal(f, repository.ObjectResult{Outcome: domain.ObjectStored}, outcomeAndDoubt(ingest(event("000", `"1"`))))
		for _, outcome := range []domain.ObjectOutcome{domain.ObjectStored, domain.ObjectDuplicate} {
			require.Equal(f, repository.ObjectResult{Outcome: outcome, Doubt: true}, outcomeAndDoubt(ingest(event("ff", `"2"`))))
		}
		object, err := f.Object(f.ctx, f.name)
		require.NoError(f, err)
		require.Equal(f, `"1"`, object.Current.ETag)
		confirmed, ok := object.Confirm(`"2"`, at.Add(time.Second))
		require.True(f, ok)
		require.Equal(f, repository.ObjectResult{Outcome: domain.ObjectStored}, outcomeAndDoubt(ingest(confirmed)))
		object, err = f.Object(f.ctx, f.name)
		require.NoError(f, err)
		require.False(f, object.Doubt)
		require.Equal(f, `"2"`, object.Current.ETag)
	}},
}

// outcomeAndDoubt returns a copy of r in which only Outcome and Doubt are set.
func outcomeAndDoubt(r repository.ObjectResult) repository.ObjectResult {
	return repository.ObjectResult{Outcome: r.Outcome, Doubt: r.Doubt}
}
