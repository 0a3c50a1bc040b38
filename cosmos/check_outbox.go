package cosmos

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

func (l *recipientCheck) readNotices(ctx context.Context) ([]*noticeDoc, error) {
	return client.All[noticeDoc](ctx, l.beginCall().Query(l.c.r.db.bundles, l.recipient.String(),
		"SELECT * FROM c WHERE c.kind = @kind", azcosmos.QueryParameter{Name: "@kind", Value: noticeKind}))
}

// checkOutbox compares notices with the gates, whose generations are the numbers of notices, and with the
// open bundles. A notice states that a bundle was closed, so if its bundle is open, a later Replay must
// have opened it. A notice without its bundle is not a finding: notices remain until they are delivered,
// even if the bundle is removed before.
func (l *recipientCheck) checkOutbox(notices []*noticeDoc, open map[cabinetName]*bundleDoc) {
	opening := make(map[string]int64, len(open))
	for _, d := range open {
		opening[d.ID] = d.Opening
	}
	for _, d := range notices {
		where := "notice " + d.ID
		n, err := d.toNotice()
		if err != nil || d.ID != idOfNotice(&n) {
			l.addFinding("H7", noticeWrong, where, nil, "the notice, number %d of group %q, does not have the form in which a Dequeue writes it: %v", d.Number, d.Group, err)
			continue
		}
		if n.Audience == domain.ForWatchersOfRemoval {
			if _, isOpen := opening[d.Bundle]; isOpen {
				l.addFinding("H7", noticeWrong, where, nil, "the notice states that bundle %s was removed, but the bundle is open", d.Bundle)
			}
			continue
		}
		generation := int64(0)
		if g := l.gates[n.Group]; g != nil {
			generation = g.Generation
		}
		if d.Number > generation {
			l.addFinding("H7", noticeWrong, where, nil, "no Dequeue has written the notice: its number is above the generation of its gate, %d", generation)
		}
		if opened, isOpen := opening[d.Bundle]; isOpen && opened < d.Number {
			l.addFinding("H7", noticeWrong, where, nil, "the notice states that bundle %s was dequeued, but the bundle has been open since generation %d", d.Bundle, opened)
		}
	}
}
