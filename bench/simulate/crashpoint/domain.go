//go:build unix

package crashpoint

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
	blobs "github.com/messagehub/messagehub/repository/content/embedded"
)

const blobKey = blobs.WellKnownKey

// A busDomain sends events over the bus, makes content when it is asked, and hears
// what was fetched.
type busDomain struct {
	load    *load
	random  *rand.Rand
	batch   []domainclient.Event // on its way; to be sent again if that is broken off
	http    *http.Client
	silent  bool // it sends nothing
	attends bool
}

// attend is the domain as long as ctx lasts, at a bus and an account.
func (d *busDomain) attend(ctx context.Context, bus, account string) (err error) {
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
	var parts sync.WaitGroup
	var serving, noticing, sending error
	parts.Go(func() { serving = c.Serve(ctx, content) })
	parts.Go(func() {
		noticing = c.Notices(ctx, func(_ context.Context, n *domainclient.Notice) error {
			d.load.ledger.noticed(n.ID)
			return nil
		})
	})
	parts.Go(func() { sending = d.send(ctx, c) })
	parts.Wait()
	err = errors.Join(serving, noticing, sending)
	_ = c.Close(context.WithoutCancel(ctx)) // of a connection that may be lost
	if ctx.Err() != nil {
		return nil //nolint:nilerr // what was broken off says nothing
	}
	return err
}

// send sends batches to all actors, each until the bus has taken it.
func (d *busDomain) send(ctx context.Context, c *domainclient.Client) error {
	for !d.silent && (d.batch != nil || d.load.hasRoom(ctx)) {
		for d.batch == nil || len(d.batch) < 3 {
			s := stream{sender: "bus", actor: actors[d.random.IntN(len(actors))], origin: request}
			id := newID(d.random)
			d.load.ledger.send(s, id)
			d.batch = append(d.batch, domainclient.Event{
				ID: uuid.MustParse(id), Recipient: s.actor, ContentType: "data", DocumentType: "E66",
				SupportsBundling: true, Weight: 1,
			})
		}
		if _, err := c.Send(ctx, d.batch); err != nil {
			return fmt.Errorf("send over the bus: %w", err)
		}
		d.batch = nil
	}
	return nil
}

// content is the ids of the events of a bundle, as a JSON array.
func content(ctx context.Context, r *domainclient.Request) (io.Reader, error) {
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
