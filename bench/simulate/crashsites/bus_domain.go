//go:build unix

package crashsites

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/google/uuid"

	"github.com/messagehub/messagehub/api/servicebus/domainclient"
	"github.com/messagehub/messagehub/bench/ledger"
	blobs "github.com/messagehub/messagehub/repository/content/embedded"
)

const blobKey = blobs.WellKnownKey

// A busDomain sends events over the bus, produces content on request, and is notified of dequeued bundles.
type busDomain struct {
	load   *clientLoad
	random *rand.Rand
	batch  []domainclient.Event // current batch, which is sent again after an interruption
	http   *http.Client
	silent bool // the domain sends no events

	goroutines sync.WaitGroup // all goroutines of the domain
	sending    sync.WaitGroup // the goroutine that sends; only one runs at a time, to preserve the order of events
	cancel     context.CancelFunc

	mu   sync.Mutex
	errs []error
}

// startServing connects the domain to a bus and a Blob account until ctx ends or it is stopped.
func (d *busDomain) startServing(ctx context.Context, bus, account string) error {
	key, err := container.NewSharedKeyCredential(blobs.WellKnownAccount, blobKey)
	if err != nil {
		return err
	}
	exchange, err := container.NewClientWithSharedKeyCredential(account+"/messagehub-exchange", key,
		&container.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: d.http}})
	if err != nil {
		return err
	}
	c, err := domainclient.New(domainclient.Options{
		Origin: request, Form: domainclient.JSON, EventsPerMessage: 2,
		Connect: domainclient.ConnectionString(bus), Exchange: exchange,
	})
	if err != nil {
		return err
	}
	ctx, d.cancel = context.WithCancel(ctx)
	part := func(run func() error) {
		d.goroutines.Go(func() {
			if err := run(); err != nil && ctx.Err() == nil { // an error after ctx has ended is expected
				d.mu.Lock()
				defer d.mu.Unlock()
				d.errs = append(d.errs, err)
			}
		})
	}
	part(func() error { return c.Serve(ctx, idsContent) })
	part(func() error {
		return c.Notices(ctx, func(_ context.Context, n *domainclient.Notice) error {
			d.load.ledger.noteNotice(n.ID)
			return nil
		})
	})
	d.sending.Add(1)
	part(func() error {
		sent := func() error {
			defer d.sending.Done()
			if d.silent {
				return nil
			}
			return d.sendAll(ctx, c)
		}()
		<-ctx.Done()
		_ = c.Close(context.WithoutCancel(ctx)) // the connection may be lost already
		return sent
	})
	return nil
}

// isServing reports whether the domain is running.
func (d *busDomain) isServing() bool { return d.cancel != nil }

// stopServing stops the domain, and waits until its sender has returned. It does not wait until the connection is
// closed, because that takes long if the bus is dead.
func (d *busDomain) stopServing() {
	if d.cancel != nil {
		d.cancel()
		d.cancel = nil
	}
	d.sending.Wait()
}

// stopAndWait stops the domain, waits for all its goroutines, and returns the errors that they recorded.
func (d *busDomain) stopAndWait() error {
	d.stopServing()
	d.goroutines.Wait()
	err := errors.Join(d.errs...)
	d.errs = nil
	return err
}

// sendAll sends batches to all actors, each until the bus accepts it.
func (d *busDomain) sendAll(ctx context.Context, c *domainclient.Client) error {
	for {
		if d.batch == nil {
			ready := d.load.awaitRoom(ctx, actors...)
			if len(ready) == 0 {
				return nil
			}
			for range 3 {
				actor := ready[d.random.IntN(len(ready))]
				id := newID(d.random)
				d.load.ledger.Send(ledger.Event{Recipient: actor, ID: id, Cabinet: request, Sender: sendsOverBus})
				d.batch = append(d.batch, domainclient.Event{
					ID: uuid.MustParse(id), Recipient: actor, ContentType: "data", DocumentType: "E66",
					SupportsBundling: true, Weight: 1,
				})
			}
		}
		if _, err := c.Send(ctx, d.batch); err != nil {
			return fmt.Errorf("send over the bus: %w", err)
		}
		d.batch = nil
	}
}

// idsContent returns the ids of the events of a bundle as a JSON array.
func idsContent(ctx context.Context, r *domainclient.Request) (io.Reader, error) {
	ids, err := r.EventIDs(ctx)
	if err != nil {
		return nil, err
	}
	events := make([]struct {
		ID string `json:"id"`
	}, len(ids))
	for i, id := range ids {
		events[i].ID = id.String()
	}
	body, err := json.Marshal(events)
	return bytes.NewReader(body), err
}
