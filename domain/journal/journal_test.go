package journal_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/journal"
	"github.com/messagehub/messagehub/repository/memory"
)

var by = journal.AdminAction{Who: "Kim", Why: "agreed"}

func TestAction_IsRecordedBeforeItIsCarriedOut(t *testing.T) {
	j := journal.New(memory.New(memory.Options{}), nil)
	subject := journal.SubjectOf("consumer", "prices", "shop")
	require.NoError(t, j.CarryOut(t.Context(), subject, "re-trigger", "m0.1", by, func(ctx context.Context) error {
		found, err := j.Records(ctx, subject, 10)
		require.NoError(t, err)
		require.Len(t, found, 1)
		require.Empty(t, found[0].Outcome)
		return nil
	}))
	found, err := j.Records(t.Context(), subject, 10)
	require.NoError(t, err)
	require.Equal(t, journal.Record{AdminAction: by, What: "re-trigger", When: found[0].When, About: "m0.1", Outcome: "done"}, found[0])
	found, err = j.Records(t.Context(), journal.SubjectOf("consumer", "prices", "other"), 10)
	require.NoError(t, err)
	require.Empty(t, found)
}

func TestAction_ThatFailsIsRecordedWithItsFailure(t *testing.T) {
	j := journal.New(memory.New(memory.Options{}), nil)
	subject := journal.SubjectOf("job", "crawl")
	ctx, cancel := context.WithCancel(t.Context())
	err := j.CarryOut(ctx, subject, "stop", "", by, func(context.Context) error {
		cancel() // the caller disconnects
		return domain.Errorf(domain.Conflict, "%s", strings.Repeat("x", 1000))
	})
	require.Equal(t, domain.Conflict, domain.KindOf(err))
	found, err := j.Records(t.Context(), subject, 10)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(found[0].Outcome, "conflict: xxx"))
	require.Len(t, found[0].Outcome, 500)
}

func TestAction_WithoutAReasonIsNotCarriedOut(t *testing.T) {
	j := journal.New(memory.New(memory.Options{}), nil)
	err := j.CarryOut(t.Context(), journal.SubjectOf("job"), "stop", "", journal.AdminAction{Who: "Kim"}, func(context.Context) error {
		t.Error("it was carried out")
		return nil
	})
	require.Equal(t, domain.Invalid, domain.KindOf(err))
}
