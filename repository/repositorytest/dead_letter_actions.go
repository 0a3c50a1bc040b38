package repositorytest

import (
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

var deadLetterOrderRules = []contractRule{
	{name: "an order has no outcome until it has ended", test: func(f *fixture) {
		queue := "queue of " + f.actor.String()
		order := repository.DeadLetterAction{AdminAction: because, What: "resend", Queue: queue, Number: 1 << 62, MessageID: "m", Reason: "damaged"}
		begun, err := f.Letters.BeginDeadLetterAction(f.ctx, order)
		require.NoError(f, err)
		require.NotEmpty(f, begun.ID)
		require.False(f, begun.When.IsZero())
		order.ID, order.When = begun.ID, begun.When
		require.Equal(f, order, begun)
		f.requireLetterActions(queue, begun)

		begun.Outcome, begun.Letters = "done", 1
		for range 2 { // the second call repeats the first
			require.NoError(f, f.Letters.EndDeadLetterAction(f.ctx, begun))
			f.requireLetterActions(queue, begun)
		}
	}},
	{name: "records are those of one queue, the newest first", test: func(f *fixture) {
		first, second := "a queue of "+f.actor.String(), "another/queue of "+f.actor.String()
		var all []repository.DeadLetterAction
		for _, queue := range []string{first, second, first, first} {
			begun, err := f.Letters.BeginDeadLetterAction(f.ctx, repository.DeadLetterAction{AdminAction: because, What: "delete", Queue: queue, Reason: "damaged"})
			require.NoError(f, err)
			all = append(all, begun)
		}
		f.requireLetterActions(first, all[3], all[2], all[0])
		f.requireLetterActions(second, all[1])
		f.requireLetterActions("no queue of " + f.actor.String())
		two, err := f.Letters.DeadLetterActions(f.ctx, first, 2)
		require.NoError(f, err)
		require.Equal(f, []string{all[3].ID, all[2].ID}, []string{two[0].ID, two[1].ID})
		require.Len(f, two, 2)
	}},
	{name: "an order names the operator and the reason", test: func(f *fixture) {
		queue := "queue of " + f.actor.String()
		for _, by := range []repository.AdminAction{
			{}, {Who: "an operator"}, {Why: "a test"}, {Who: " ", Why: "a test"}, {Who: "an operator", Why: "a\ntest"}, {Who: strings.Repeat("ø", 201), Why: "a test"},
		} {
			_, err := f.Letters.BeginDeadLetterAction(f.ctx, repository.DeadLetterAction{AdminAction: by, What: "look", Queue: queue, Number: 1})
			require.Equal(f, domain.Invalid, domain.KindOf(err), "%v", err)
		}
		f.requireLetterActions(queue)
	}},
}

// requireLetterActions requires that want are the records of a queue, in order.
func (f *fixture) requireLetterActions(queue string, want ...repository.DeadLetterAction) {
	f.Helper()
	got, err := f.Letters.DeadLetterActions(f.ctx, queue, 10)
	require.NoError(f, err)
	require.Len(f, got, len(want))
	for i := range want {
		require.True(f, want[i].When.Equal(got[i].When))
		got[i].When = want[i].When
	}
	require.Equal(f, want, got[:len(want):len(want)])
}
