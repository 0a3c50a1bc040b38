package objects

import (
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/accounttest"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/objecttest"
	"github.com/messagehub/messagehub/repository"
)

const lateBy = 10 * time.Millisecond

// A delayedTransport delays each request by lateBy.
type delayedTransport struct{ next *faulty.Transport }

func (l delayedTransport) Do(req *http.Request) (*http.Response, error) {
	<-time.After(lateBy)
	return l.next.Do(req)
}

// After a refused batch, the rounds of a node wait for further requests. Without a refusal they do not
// wait.
func TestRoundsOfANode_WaitForFurtherRequestsOnlyAfterARefusal(t *testing.T) {
	for _, wasRefused := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			a := accounttest.New(t, embedded.Options{}, Containers())
			s := New(a.ConnectBy(delayedTransport{a.Transport}), Options{Shards: 1})
			ingest := func(key string) {
				results, err := s.Ingest(t.Context(), []repository.ObjectReport{{Name: must(domain.ParseObjectName("bucket", key)), ObjectEvent: objecttest.Calls("[C@01]")[0][0]}})
				require.NoError(t, err)
				require.NoError(t, results[0].Err)
			}
			ingest("a") // creates the shards of the bucket
			if wasRefused {
				s.gathering.Store(gatherRounds)
			}

			began := time.Now()
			ingest("b")
			const round = 2 * lateBy // duration of a round: a read and a batch
			require.Equal(t, round, time.Since(began), "one caller has nothing to wait for")

			var callers sync.WaitGroup
			for _, key := range []string{"c", "d", "e"} { // one caller stores its own event in a round, and then another caller stores two events in a round
				callers.Go(func() { ingest(key) })
			}
			callers.Wait()
			before, began := a.Transport.Calls(), time.Now()
			callers.Go(func() { ingest("f") })
			<-time.After(round / 4)
			callers.Go(func() { ingest("g") })
			callers.Wait()
			if wasRefused {
				require.Equal(t, 2, a.Transport.Calls()-before, "one round")
				require.Equal(t, round/2+round, time.Since(began))
			} else {
				require.Equal(t, 4, a.Transport.Calls()-before, "two rounds")
			}
		})
	}
}
