package cosmos

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

// Pages are written in concurrent batches of about this size. Cosmos DB permits 2 MB and 100 operations
// in a batch. It charges for the content of a batch, so several small batches cost as much as a large
// one, and the first batch can be sent sooner.
const (
	batchBytes = 128 << 10
	batchPages = 50
)

// partsAtOnce limits the parts of a Save that are written concurrently. A Save usually has few parts, but
// may have a thousand.
const partsAtOnce = 32

// insertPages creates the pages of p, in any order, because they become visible only when p is committed.
func (w *recipientWriter) insertPages(ctx context.Context, c *call, p *savePlan) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(partsAtOnce)
	for _, some := range p.batches() {
		g.Go(func() error { return w.createPages(ctx, c, some) })
	}
	return g.Wait()
}

// A pageBatch contains pages that are created together.
type pageBatch struct {
	*drawerPage          // first page of the batch
	docs        [][]byte // all pages of the batch, encoded
}

// pageBatches returns the pages of p in batches. Every call returns the same batches.
func (p *savePlan) pageBatches() []pageBatch {
	var all []pageBatch
	for i := range p.intent.Parts {
		pages := pagesOf(p.intent, p.objectName(i), &p.intent.Parts[i], p.events[i])
		for len(pages) > 0 {
			batch, size := pageBatch{drawerPage: pages[0]}, 0
			for len(pages) > 0 && len(batch.docs) < batchPages && size < batchBytes {
				size += (len(pages[0].Events) + len(pages[0].Saves)) * 4 / 3
				batch.docs = append(batch.docs, client.Encode(pages[0]))
				pages = pages[1:]
			}
			all = append(all, batch)
		}
	}
	return all
}

// objectName returns the name of the object that stores the payloads of part i. The name contains the ids
// of the drawer and of the intent.
func (p *savePlan) objectName(i int) string {
	part := &p.intent.Parts[i]
	return fmt.Sprintf("%s/%05d-%s", payloadFolder(part.Drawer), part.Slot, p.intent.ID)
}

// payloadFolder returns the folder in the content store that contains the payloads of a drawer.
func payloadFolder(drawer string) string { return "payloads/" + drawer }

// putPayloads stores the payloads of p, in one object for each part that has payloads.
func (w *recipientWriter) putPayloads(ctx context.Context, p *savePlan) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(partsAtOnce)
	for i, events := range p.events {
		if payloads := payloadsOf(events); payloads != nil {
			g.Go(func() error {
				err := w.r.content.Put(ctx, p.objectName(i), payloads)
				if domain.KindOf(err) == domain.Conflict { // only this plan uses this name, so an earlier attempt has stored the same object
					err = nil
				}
				return err
			})
		}
	}
	return g.Wait()
}

// dropPayloads tries to delete the payloads of a plan whose intent was not stored.
func (w *recipientWriter) dropPayloads(ctx context.Context, p *savePlan) {
	var names []string
	for i, events := range p.events {
		if payloadsOf(events) != nil {
			names = append(names, p.objectName(i))
		}
	}
	w.deleteObjects(ctx, names)
}

// deletionTimeout limits the deletion of unreferenced objects, because the next Saves of the recipient
// wait for it.
const deletionTimeout = 2 * time.Second

// deleteObjects tries to delete objects, even if ctx has ended, because the sweep does not delete the
// objects of a drawer that was never created.
func (w *recipientWriter) deleteObjects(ctx context.Context, names []string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deletionTimeout)
	defer cancel()
	for _, name := range names {
		_ = w.r.content.Delete(ctx, name)
	}
}

// pagesOf divides the events of a part into pages.
func pagesOf(it *intent, object string, part *drawerPart, events []numberedEvent) []*drawerPage {
	var pages []*drawerPage
	slot, payloadsFrom := part.Slot, int64(0)
	for len(events) > 0 {
		data, n := encodePage(events)
		pg := &drawerPage{
			ID: pageID(slot), PartitionKey: part.Drawer, Intent: it.ID, Saved: it.Saved,
			Slot: slot, Until: slot + n, FirstSequence: events[0].sequence, Events: data,
			Saves: encodeSaves(savesOf(events[:n], slot), slot),
		}
		length := int64(0)
		for _, e := range events[:n] {
			length += int64(len(e.Payload))
		}
		if length > 0 {
			pg.Payloads, pg.PayloadsFrom = object, payloadsFrom
		}
		payloadsFrom += length
		pg.Sum = pg.computeChecksum()
		pages = append(pages, pg)
		slot, events = slot+n, events[n:]
	}
	return pages
}

// payloadsOf returns a reader of the concatenated payloads of events, or nil if none exist.
func payloadsOf(events []numberedEvent) io.Reader {
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

func (w *recipientWriter) createPages(ctx context.Context, c *call, some pageBatch) error {
	// A crash after this write leaves some pages of the intent. No head includes the slots of these
	// pages, so no reader returns them. The rollback seals the drawer below these slots, and the sweep
	// deletes the pages with the drawer.
	_, err := c.Batch(ctx, w.r.db.cabinets, some.PartitionKey, false, func(b *azcosmos.TransactionalBatch) {
		for _, doc := range some.docs {
			b.CreateItem(doc, nil)
		}
	})
	if !client.IsRefused(err) {
		return err
	}
	// A page exists already. If it belongs to this intent, an earlier attempt has created the whole
	// batch. A page of another intent is impossible, because rollbacks seal drawers; this comparison
	// checks it nevertheless.
	var first drawerPage
	_, err = c.Read(ctx, w.r.db.cabinets, some.PartitionKey, some.ID, &first)
	if err == nil && first.Intent == some.Intent {
		return nil
	}
	if err == nil || client.IsNotFound(err) {
		return client.ErrStale
	}
	return err
}
