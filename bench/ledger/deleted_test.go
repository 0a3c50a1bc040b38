package ledger_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/bench/ledger"
)

func TestDeletedContent_AllowsAnotherBody(t *testing.T) {
	l := ledger.New(ledger.Options{InOrder: true})
	for _, id := range []string{"1", "2"} {
		l.Send(ledger.Event{Recipient: "actor", ID: id, Cabinet: "c"})
	}
	one := func() ([]ledger.Element, error) { return []ledger.Element{{ID: "1"}}, nil }
	two := func() ([]ledger.Element, error) { return []ledger.Element{{ID: "2"}}, nil }
	receive := func(body string, start ledger.Moment, read func() ([]ledger.Element, error)) error {
		_, err := l.Receive("actor", "bundle", []byte(body), start, read)
		return err
	}
	isRule := func(rule ledger.Rule, err error) {
		t.Helper()
		var v *ledger.Violation
		require.ErrorAs(t, err, &v)
		require.Equal(t, rule, v.Rule)
	}
	before := l.Now()
	require.NoError(t, receive("a", before, one))
	isRule(ledger.RuleSameBody, receive("b", before, one))
	l.Deleting([]byte("a"))
	require.NoError(t, receive("a", l.Now(), one), "it may be there still")
	l.Deleted([]byte("a"))
	isRule(ledger.RuleSameBody, receive("b", l.Now(), two))
	require.NoError(t, receive("b", l.Now(), one))
	require.NoError(t, receive("a", before, one), "an answer that was under way")
	isRule(ledger.RuleDeleted, receive("a", l.Now(), one))
	isRule(ledger.RuleSameBody, receive("c", l.Now(), one))
	require.NoError(t, receive("b", l.Now(), one))
}
