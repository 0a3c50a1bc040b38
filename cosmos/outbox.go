package cosmos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

var _ repository.Outbox = (*Repository)(nil)

// A relay reads the oldest notices of the outbox, delivers a notice, and deletes it. The ids of the
// notices of a group for an audience ascend with the generation of its gate. A query ordered by id returns
// the oldest notices without a gap: a replica applies the writes of a partition in their order, so a stale
// read misses only the newest notices. A store must do this at every consistency level.
//
// A query for the kind of document finds the recipients with notices; the kind is indexed for the gates
// anyway. The query reads all partitions, so it runs rarely; see Waiting.

// noticesAtOnce is the number of notices that are read in one request.
const noticesAtOnce = 100

// Notices implements repository.Outbox. It reads the first notices of the outbox. If more notices are
// stored, it also reads the first notices of each other group and audience. So a long queue of one group
// does not delay the other groups.
//
// A stale read misses the newest notices, never an older one of the same group and audience. A replica
// applies the writes of a partition in order, the result has the order of the notices, and later result
// pages have later notices. A notice that was delivered since the read may be returned again.
func (r *Repository) Notices(ctx context.Context, recipient domain.ActorID) ([]domain.Notice, error) {
	c := r.beginCall("notices")
	var notices []domain.Notice
	for after := ""; ; {
		some, err := client.All[noticeDoc](ctx, c.Query(r.db.bundles, recipient.String(),
			fmt.Sprintf("SELECT TOP %d * FROM c WHERE c.kind = @kind AND c.id > @after ORDER BY c.id", noticesAtOnce),
			azcosmos.QueryParameter{Name: "@kind", Value: noticeKind}, azcosmos.QueryParameter{Name: "@after", Value: after}))
		if err != nil {
			return nil, client.Classify("notices of "+recipient.String(), err)
		}
		for _, d := range some {
			n, err := d.toNotice()
			if err != nil {
				return nil, err
			}
			notices = append(notices, n)
		}
		if len(some) < noticesAtOnce {
			return notices, nil
		}
		last := &notices[len(notices)-1]
		after = noticePrefixEnd(last.Audience, last.Group.String())
	}
}

// Delivered implements repository.Outbox.
func (r *Repository) Delivered(ctx context.Context, n domain.Notice) error {
	c := r.beginCall("delivered")
	// A crash before this write leaves the notice. The relay delivers it again.
	err := c.DeleteIfExists(ctx, r.db.bundles, n.Recipient.String(), idOfNotice(&n))
	return c.Outcome("delete the notice of bundle "+n.Bundle.String()+" from the outbox", err)
}

// waitingPages is the limit for the result pages that Waiting reads after it has found a recipient.
const waitingPages = 10

// Waiting implements repository.Outbox. It continues where the previous call stopped, so that recipients
// with undeliverable notices do not hide the other recipients. The kind of a document is indexed: if no
// notice waits, the query reads no document.
func (r *Repository) Waiting(ctx context.Context, before time.Time, limit int) ([]domain.ActorID, error) {
	from := r.waitingFrom.Swap(nil)
	waiting, strays, err := r.findWaiting(ctx, before, limit, from)
	if from != nil && (len(waiting) == 0 || err != nil) {
		waiting, strays, err = r.findWaiting(ctx, before, limit, nil)
	}
	return waiting, client.Classify("find waiting notices", errors.Join(err, strays))
}

// findWaiting also returns strays, an error that names notices in partitions that belong to no recipient.
// The relay delivers the other notices nevertheless.
func (r *Repository) findWaiting(ctx context.Context, before time.Time, limit int, from *string) (waiting []domain.ActorID, strays, err error) {
	q := r.beginCall("waiting").QueryAllPartitions(r.db.bundles, noticeKind,
		"SELECT c.recipient FROM c WHERE c.kind = @kind AND (c.since < @before OR c.since > @ahead)",
		azcosmos.QueryParameter{Name: "@kind", Value: noticeKind},
		azcosmos.QueryParameter{Name: "@before", Value: millisOf(before)},
		azcosmos.QueryParameter{Name: "@ahead", Value: millisOf(before.Add(repository.MaxClockAhead))})
	if from != nil {
		q.ResumeAt(*from)
	}
	for pages := 0; !q.IsDone() && len(waiting) < limit && (len(waiting) == 0 || pages < waitingPages); pages++ {
		items, err := q.Next(ctx, limit-len(waiting))
		if q.SkipDamage(err) {
			strays = err
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		for _, item := range items {
			var d noticeDoc
			err := q.Decode(item, &d)
			if err != nil {
				strays = err
				continue
			}
			recipient, err := domain.ParseActorID(d.Recipient)
			if err != nil {
				strays = domain.Errorf(domain.Damaged, "a notice is in partition %q: %w", d.Recipient, err)
				continue
			}
			if !slices.Contains(waiting, recipient) {
				waiting = append(waiting, recipient)
			}
		}
		q.UseCall(r.client.Begin("waiting")) // each result page has its own budget of retries
	}
	if next := q.NextPage(); next != "" {
		r.waitingFrom.Store(&next)
	}
	return waiting, strays, nil
}
