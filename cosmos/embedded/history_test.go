package embedded_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
)

// Several clients concurrently read and write a few documents of one partition. Then Porcupine searches for a serial
// order of their calls in which a simple model returns the same responses. The order must respect real time: a call
// that ended before a second call began precedes it.
const (
	clients      = 5
	calls        = 8 // number of calls of each client
	checkTimeout = 2 * time.Minute
)

// TestConcurrentClients_SeeASerialOrder compares complete responses (status, value and etag) of single operations,
// batches and query pages with the model.
func TestConcurrentClients_SeeASerialOrder(t *testing.T) {
	for _, where := range []struct {
		name      string
		disk      bool
		overHTTP  bool
		histories int
	}{
		{"memory", false, false, 40},
		{"disk", true, false, 40},
		{"disk over HTTP", true, true, 20},
	} {
		for _, lossy := range []bool{false, true} {
			name := where.name
			if lossy {
				name += " that loses answers"
			}
			t.Run(name, func(t *testing.T) {
				o := embedded.Options{}
				if where.disk {
					o.Dir = t.TempDir()
				}
				engine, _ := openEngine(t, o)
				c := lossyClient(t, engine, where.overHTTP, lossy)
				etags := &etagBook{}
				for n := range where.histories {
					h := &callHistory{c: c, pk: fmt.Sprint("p", n), etags: etags}
					h.runClients(uint64(n))
					switch porcupine.CheckOperationsTimeout(documents, h.calls, checkTimeout) {
					case porcupine.Ok:
					case porcupine.Unknown:
						t.Fatalf("history %d: no verdict within %v", n, checkTimeout)
					case porcupine.Illegal:
						t.Fatalf("history %d has no order:\n%s", n, h)
					}
				}
				require.False(t, etags.twice.Load(), "an etag stands for one write, and a write has one etag")
			})
		}
	}
}

// A callHistory contains the calls that clients have made in one partition.
type callHistory struct {
	c     *azcosmos.ContainerClient
	pk    string
	etags *etagBook

	time  atomic.Int64 // logical time: the number of begun calls plus the number of ended calls
	value atomic.Int64 // value of the last write; each write increments it

	mu    sync.Mutex
	calls []porcupine.Operation
}

func (h *callHistory) String() string {
	text := ""
	for _, op := range h.calls {
		text += fmt.Sprintf("client %d, %d to %d: %v\n", op.ClientId, op.Call, op.Return, documents.DescribeOperation(op.Input, op.Output))
	}
	return text
}

func (h *callHistory) runClients(seed uint64) {
	var group sync.WaitGroup
	for id := range clients {
		group.Go(func() {
			cl := &historyClient{callHistory: h, random: rand.New(rand.NewPCG(seed, uint64(id)))}
			for range calls {
				in := cl.nextCall()
				begun := h.time.Add(1)
				out, err := cl.runCall(context.Background(), in)
				end := h.time.Add(1)
				if err != nil {
					// The call may already be executed, or may be executed later. A call that is never executed counts
					// as executed after all other calls.
					out, end = callResult{unknown: true}, math.MaxInt64
				}
				h.mu.Lock()
				h.calls = append(h.calls, porcupine.Operation{ClientId: id, Input: in, Output: out, Call: begun, Return: end})
				h.mu.Unlock()
			}
		})
	}
	group.Wait()
}
