package objects

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

// A plan is what a batch changes of one object.
type plan struct {
	doc     *objectDoc // before; nil: none is stored
	changes domain.ObjectChanges
	change  *domain.Change // what those who watch the object are notified of, or nil
}

// maxLookups is the limit for the lookups of one plan: the answers to some queries raise others.
const maxLookups = 16

// plan decides what events change of an object, and sets their outcomes.
func (h *shard) plan(ctx context.Context, c *client.Call, name domain.ObjectName, doc *objectDoc, groups []*objectEvents, ids []string) (*plan, error) {
	object := domain.Object{Name: name, ForgottenTo: h.store.horizon(name.Bucket())}
	if doc != nil {
		var err error
		if object, err = doc.object(); err != nil {
			return nil, err
		}
	}
	decided, err := h.decide(ctx, c, &object, doc, ids, func(u *domain.ObjectUpdate) error {
		for _, g := range groups {
			g.outcomes = u.Apply(g.events)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, g := range groups {
		g.doubt, g.exists = decided.changes.Object.Doubt, decided.changes.Object.Current != nil
	}
	return decided, nil
}

// decide makes the plan of an update, which is repeated until all that it asks for is read.
func (h *shard) decide(ctx context.Context, c *client.Call, object *domain.Object, doc *objectDoc, ids []string, update func(u *domain.ObjectUpdate) error) (*plan, error) {
	answers := make(domain.SpilledAnswers)
	for range maxLookups {
		u := object.Update(answers, ids...)
		if err := update(u); err != nil {
			return nil, err
		}
		changes, queries := u.Finish(h.store.opts.Limits)
		if len(queries) == 0 {
			return &plan{doc, changes, h.store.newChange(&changes)}, nil
		}
		l := lookup{shard: h, call: c, doc: doc}
		if err := l.answer(ctx, queries, answers); err != nil {
			return nil, err
		}
	}
	return nil, domain.Errorf(domain.Damaged, "object %s: its spilled rows contradict it", doc.ID)
}

// operations returns how many operations of a batch the plan has.
func (p *plan) operations() int {
	c := &p.changes
	n := 1
	if p.change != nil {
		n++
	}
	return n + len(c.Create) + len(c.Replace) + len(c.Delete) + len(c.Heads) + len(c.NoHeads)
}

// addTo adds the plan to a batch. The condition of the object holds for all documents of it.
func (p *plan) addTo(b *azcosmos.TransactionalBatch, partition string) {
	c, key := &p.changes, p.changes.Object.Name.Key()
	d := newObjectDoc(partition, &c.Object, p.doc)
	switch {
	case p.doc == nil:
		b.CreateItem(client.Encode(d), nil)
	case c.IsGone:
		b.DeleteItem(d.ID, &azcosmos.TransactionalBatchItemOptions{IfMatchETag: &p.doc.ETag})
	default:
		b.ReplaceItem(d.ID, client.Encode(d), &azcosmos.TransactionalBatchItemOptions{IfMatchETag: &p.doc.ETag})
	}
	for i := range c.Create {
		b.CreateItem(client.Encode(newRowDoc(partition, key, &c.Create[i])), nil)
	}
	for i := range c.Replace {
		d := newRowDoc(partition, key, &c.Replace[i])
		b.ReplaceItem(d.ID, client.Encode(d), existing())
	}
	for _, id := range c.Delete {
		b.DeleteItem(rowID(key, id), existing())
	}
	for i := range c.Heads {
		b.UpsertItem(client.Encode(newHeadDoc(partition, key, &c.Heads[i])), nil)
	}
	for _, v := range c.NoHeads {
		b.DeleteItem(headID(key, v), existing())
	}
	if p.change != nil {
		b.CreateItem(client.Encode(newChangeDoc(partition, key, p.change)), nil)
	}
}

// write stores plans in one batch. What those who watch an object are notified of is in it: so there is no
// change without it.
func (h *shard) write(ctx context.Context, c *client.Call, plans ...*plan) error {
	_, err := c.Batch(ctx, h.store.objects, h.key, false, func(b *azcosmos.TransactionalBatch) {
		for _, p := range plans {
			p.addTo(b, h.key)
		}
	})
	if err != nil {
		return err
	}
	for _, p := range plans {
		if p.change != nil {
			h.store.observe(*p.change) // one whose outcome is not known is found by looking
		}
	}
	return nil
}

// existing is the condition that a document exists.
func existing() *azcosmos.TransactionalBatchItemOptions {
	anyTag := azcore.ETagAny
	return &azcosmos.TransactionalBatchItemOptions{IfMatchETag: &anyTag}
}
