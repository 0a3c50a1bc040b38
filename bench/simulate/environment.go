package simulate

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"

	busembedded "github.com/messagehub/messagehub/api/servicebus/embedded"
	"github.com/messagehub/messagehub/cosmos/embedded"
	blobembedded "github.com/messagehub/messagehub/repository/content/embedded"
)

// hubCount is the number of hubs of a simulation.
const hubCount = 2

// An environment holds the hubs, the accounts, and the transports between them.
type environment struct {
	engine         *embedded.Engine
	bus            *busembedded.Namespace
	blobs          *blobembedded.Account
	issuer         *tokenIssuer   // issuer of all clients' tokens; nil if hubs trust the header X-Actor-Id
	hubs           [hubCount]*hub // hubs by index; nil while a hub is down
	starts         [hubCount]int  // number of starts of each hub
	busTransports  []*busTransport
	httpTransports []*httpTransport
	staleCommits   atomic.Int64     // number of latest commits that are invisible to the current read
	stored         *storedDocuments // copy of the stored documents; nil if no corruptor runs
}

// isBlob reports whether a request is for the Blob account.
func (sim *simulation) isBlob(req *http.Request) bool {
	return strings.HasPrefix(req.URL.Path, "/"+sim.env.blobs.Name())
}

// hubAt returns the i-th hub, or nil while it is down.
func (sim *simulation) hubAt(i int) *hub {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	return sim.env.hubs[i]
}

// closeAccounts closes all accounts.
func (sim *simulation) closeAccounts() error {
	return errors.Join(sim.env.engine.Close(), sim.env.bus.Close(), sim.env.blobs.Close())
}
