package objects

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

// An objectPlan contains the changes to one object in a batch.
type objectPlan struct {
	doc        *objectDoc // the stored document; nil if the object does not exist
	changes    domain.ObjectChanges
	change     *domain.Change                       // change for the watches of the object, or nil
	state      *domain.ObjectChange                 // change for the topic of objects, or nil
	operations []func(*azcosmos.TransactionalBatch) // functions that each add one operation to a batch
	bytes      int                                  // total size of the documents in operations
}

// maxLookups is the limit for the lookups of one plan. The answers to some queries lead to further
// queries.
const maxLookups = 16

// plan decides how events change an object, and sets their outcomes.
func (h *shard) plan(ctx context.Context, c *client.Call, name domain.ObjectName, doc *objectDoc, groups []*objectEvents, ids []string) (*objectPlan, error) {
	object := domain.Object{Name: name, ForgottenTo: h.store.retentionHorizon(name.Bucket())}
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

// decide returns the plan of an update. It repeats the update until all queries of the update are answered.
func (h *shard) decide(ctx context.Context, c *client.Call, object *domain.Object, doc *objectDoc, ids []string, update func(u *domain.ObjectUpdate) error) (*objectPlan, error) {
	answers := make(domain.SpilledAnswers)
	for range maxLookups {
		u := object.Update(answers, ids...)
		if err := update(u); err != nil {
			return nil, err
		}
		changes, queries := u.Finish(h.store.opts.Limits)
		if len(queries) == 0 {
			p := &objectPlan{doc: doc, changes: changes, change: h.store.newChange(&changes)}
			if h.store.topic != nil {
				p.state = p.changes.StateChange(h.store.opts.Clock())
			}
			if !changes.IsEmpty {
				p.encode(h.key)
			}
			return p, nil
		}
		l := rowLookup{shard: h, call: c, doc: doc}
		if err := l.answer(ctx, queries, answers); err != nil {
			return nil, err
		}
	}
	return nil, domain.Errorf(domain.Damaged, "object %s: the spilled rows contradict the object", doc.ID)
}

// encode creates the operations of the plan. Every plan writes the object on condition of its etag, which
// protects all documents of the object.
func (p *objectPlan) encode(partition string) {
	type batch = *azcosmos.TransactionalBatch
	add := func(doc any, operation func(b batch, body []byte)) {
		body := client.Encode(doc)
		p.bytes += len(body)
		p.operations = append(p.operations, func(b batch) { operation(b, body) })
	}
	remove := func(id string, condition *azcosmos.TransactionalBatchItemOptions) {
		p.operations = append(p.operations, func(b batch) { b.DeleteItem(id, condition) })
	}
	create := func(b batch, body []byte) { b.CreateItem(body, nil) }
	replace := func(id string, condition *azcosmos.TransactionalBatchItemOptions) func(batch, []byte) {
		return func(b batch, body []byte) { b.ReplaceItem(id, body, condition) }
	}

	c, key := &p.changes, p.changes.Object.Name.Key()
	d := newObjectDoc(partition, &c.Object, p.doc)
	switch {
	case p.doc == nil:
		add(d, create)
	case c.IsGone:
		remove(d.ID, &azcosmos.TransactionalBatchItemOptions{IfMatchETag: &p.doc.ETag})
	default:
		add(d, replace(d.ID, &azcosmos.TransactionalBatchItemOptions{IfMatchETag: &p.doc.ETag}))
	}
	for i := range c.Create {
		add(newRowDoc(partition, key, &c.Create[i]), create)
	}
	for i := range c.Replace {
		d := newRowDoc(partition, key, &c.Replace[i])
		add(d, replace(d.ID, ifExists()))
	}
	for _, id := range c.Delete {
		remove(rowID(key, id), ifExists())
	}
	for i := range c.Heads {
		add(newHeadDoc(partition, key, &c.Heads[i]), func(b batch, body []byte) { b.UpsertItem(body, nil) })
	}
	for _, v := range c.NoHeads {
		remove(headID(key, v), ifExists())
	}
	if p.change != nil {
		add(newChangeDoc(partition, key, p.change), create)
	}
	if p.state != nil {
		add(newStateDoc(partition, p.state), create)
	}
}

// addTo adds the operations of the plan to a batch.
func (p *objectPlan) addTo(b *azcosmos.TransactionalBatch) {
	for _, add := range p.operations {
		add(b)
	}
}

// write stores plans in one batch. The batch includes the changes for watches and for the topic of
// objects, so no state is stored without its change.
func (h *shard) write(ctx context.Context, c *client.Call, plans ...*objectPlan) error {
	_, err := c.Batch(ctx, h.store.objects, h.key, false, func(b *azcosmos.TransactionalBatch) {
		for _, p := range plans {
			p.addTo(b)
		}
	})
	if err != nil {
		return err
	}
	for _, p := range plans {
		if p.change != nil {
			h.store.observe(*p.change) // if the outcome of the write is unknown, a later call of Unpublished finds the change
		}
		if p.state != nil {
			h.store.topic.observe(*p.state) // if the outcome of the write is unknown, a later call of Topic.Unpublished finds the change
		}
	}
	return nil
}

// ifExists returns the condition that a document exists.
func ifExists() *azcosmos.TransactionalBatchItemOptions {
	anyTag := azcore.ETagAny
	return &azcosmos.TransactionalBatchItemOptions{IfMatchETag: &anyTag}
}
