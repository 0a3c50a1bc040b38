package cosmos

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/domain"
)

// Pages go out in batches of about this size, side by side. Cosmos takes 2 MB and 100,
// but a batch is charged for what is in it, so that several cost no more than one, and
// a small one is sooner on its way.
const (
	batchBytes = 128 << 10
	batchPages = 50
)

// partsAtOnce is how many parts of a Save are written at the same time. A Save has
// few, but it may have a thousand.
const partsAtOnce = 32

// insert creates the pages of p. Their order is of no account: nothing shows them
// yet.
func (w *writer) insert(ctx context.Context, o *operation, p *plan) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(partsAtOnce)
	for i := range p.intent.Parts {
		part, events := &p.intent.Parts[i], p.events[i]
		pages := pagesOf(p.intent, p.object(i), part, events)
		for len(pages) > 0 {
			n, size := 0, 0
			for n < len(pages) && n < batchPages && size < batchBytes {
				size += len(pages[n].Events) * 4 / 3
				n++
			}
			some := pages[:n]
			pages = pages[n:]
			g.Go(func() error { return w.createPages(ctx, o, some) })
		}
	}
	return g.Wait()
}

// object is the name of the object that holds the payloads of part i. It is
// below the drawer's id, and this intent's own.
func (p *plan) object(i int) string {
	part := &p.intent.Parts[i]
	return fmt.Sprintf("%s/%05d-%s", payloadFolder(part.Drawer), part.Slot, p.intent.ID)
}

// payloadFolder is where the payloads of a drawer lie in the content store.
func payloadFolder(drawer string) string { return "payloads/" + drawer }

// putPayloads stores the payloads of p, one object for each part that has any.
func (w *writer) putPayloads(ctx context.Context, p *plan) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(partsAtOnce)
	for i, events := range p.events {
		if payloads := payloadsOf(events); payloads != nil {
			g.Go(func() error {
				err := w.r.content.Put(ctx, p.object(i), payloads)
				if domain.KindOf(err) == domain.Conflict { // nobody else has this name, so it is the same object
					err = nil
				}
				return err
			})
		}
	}
	return g.Wait()
}

// dropPayloads removes the payloads of a plan that has come to nothing, if it can.
func (w *writer) dropPayloads(ctx context.Context, p *plan) {
	for i, events := range p.events {
		if payloadsOf(events) != nil {
			_ = w.r.content.Delete(ctx, p.object(i))
		}
	}
}

// pagesOf cuts the events of a part into pages.
func pagesOf(it *intent, object string, part *part, events []numbered) []*page {
	var pages []*page
	slot, payloadsFrom := part.Slot, int64(0)
	for len(events) > 0 {
		data, n := encodePage(events)
		pg := &page{
			ID: pageID(slot), PartitionKey: part.Drawer, Intent: it.ID, Saved: it.Saved,
			Slot: slot, Until: slot + n, FirstSequence: events[0].sequence, Events: data,
		}
		length := int64(0)
		for _, e := range events[:n] {
			length += int64(len(e.Payload))
		}
		if length > 0 {
			pg.Payloads, pg.PayloadsFrom = object, payloadsFrom
		}
		payloadsFrom += length
		pg.Sum = pg.sum()
		pages = append(pages, pg)
		slot, events = slot+n, events[n:]
	}
	return pages
}

// payloadsOf returns the payloads of events one behind the other, nil if there
// are none.
func payloadsOf(events []numbered) io.Reader {
	var readers []io.Reader
	for _, e := range events {
		if len(e.Payload) > 0 {
			readers = append(readers, bytes.NewReader(e.Payload))
		}
	}
	if readers == nil {
		return nil
	}
	return io.MultiReader(readers...)
}

func (w *writer) createPages(ctx context.Context, o *operation, pages []*page) error {
	docs := make([][]byte, len(pages))
	for i, pg := range pages {
		docs[i] = encoded(pg)
	}
	_, err := o.batch(ctx, w.r.db.cabinets, pages[0].PartitionKey, false, func(b *azcosmos.TransactionalBatch) {
		for _, doc := range docs {
			b.CreateItem(doc, nil)
		}
	})
	if !isRefused(err) {
		return err
	}
	// A page is there already. If it is this intent's, the batch was carried out
	// before, and as a whole.
	var first page
	_, err = o.read(ctx, w.r.db.cabinets, pages[0].PartitionKey, pages[0].ID, &first)
	if err == nil && first.Intent == pages[0].Intent {
		return nil
	}
	if err == nil || isNotFound(err) {
		return errMoved
	}
	return err
}
