package cosmos

import (
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
)

// storeStrays stores heads and notices whose partition key is a number or an invalid id, so that they
// belong to no recipient.
func (s *trust) storeStrays(db database) {
	s.Helper()
	for text, key := range map[string]azcosmos.PartitionKey{`7`: azcosmos.NewPartitionKeyNumber(7), `"|"`: azcosmos.NewPartitionKeyString("|")} {
		_, err := db.catalog.CreateItem(s.Context(), key, []byte(`{"id":"head","partitionKey":`+text+`}`), nil)
		require.NoError(s, err)
		_, err = db.bundles.CreateItem(s.Context(), key, []byte(`{"id":"notice|x|1","kind":"notice","since":1,"recipient":`+text+`}`), nil)
		require.NoError(s, err)
	}
}

func TestStrayDocuments_AffectNoRecipient(t *testing.T) {
	s := newTrust(t)
	node := s.node(small, false)
	s.confirmBundles(node, 1)
	s.storeStrays(node.db)

	waiting, err := node.Waiting(t.Context(), time.Now().Add(time.Hour), 10)
	require.Equal(t, domain.Damaged, domain.KindOf(err), "%v", err)
	require.Equal(t, []domain.ActorID{s.actor}, waiting, "the notice of another is found nevertheless")

	swept, err := node.Sweep(t.Context())
	require.Equal(t, domain.Damaged, domain.KindOf(err), "%v", err)
	require.EqualValues(t, 1, swept.Recipients, "what others have acknowledged is swept nevertheless")

	report, err := node.Check(t.Context(), CheckOptions{})
	require.NoError(t, err, "a check goes on to its end")
	require.EqualValues(t, 1, report.Recipients)
	damage := 0
	for _, f := range report.Findings {
		if f.Damage { // this node writes no hints, so all other findings report missing hints
			require.Equal(t, unreadable, f.Kind)
			require.Equal(t, "a head", f.Where)
			damage++
		}
	}
	require.Equal(t, 2, damage)
}
