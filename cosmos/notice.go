package cosmos

import (
	"fmt"
	"time"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

// A noticeDoc is a notice that has not been delivered. The batch that closes the bundle creates the
// notice, and the relay deletes it after its delivery; it does not expire. A bundle in content mode
// request has a notice for its domain. If the gate lists subscriptions, every bundle has a notice for
// subscribers. A watched bundle has a notice for its watchers; the batch that removes the bundle creates
// a second one.
type noticeDoc struct {
	ID        string `json:"id"`
	Recipient string `json:"recipient"`
	Kind      string `json:"kind"`               // always "notice"
	Audience  string `json:"audience,omitempty"` // "" (the domain), "subscribers", "watchers" or "watchers of removal"
	Group     string `json:"group"`
	Number    int64  `json:"number"` // the generation of the gate that closed the bundle; 0 if the bundle was removed
	Origin    string `json:"origin"`
	Bundle    string `json:"bundle"`
	List      string `json:"list,omitempty"`
	Events    int    `json:"events,omitempty"`
	Version   int64  `json:"version,omitempty"` // version of the change, in notices for watchers
	Since     millis `json:"since"`
	Peeked    packed `json:"peeked,omitempty"` // the span of the Peek that opened the bundle; see encodeSpan
	client.FormatNumber
}

const noticeKind = "notice"

// noticeAudiences maps an audience to noticeDoc.Audience and to the prefix of the notices' ids. Because of
// the prefix, the notices of an audience are consecutive. The notices of removals sort after the notices
// of Dequeues, so the relay delivers the Dequeues first.
var noticeAudiences = map[domain.Audience]struct{ member, prefix string }{
	domain.ForDomain:      {"", noticeKind},
	domain.ForSubscribers: {"subscribers", "dequeued"},
	domain.ForWatchers:    {"watchers", "watched"},

	domain.ForWatchersOfRemoval: {"watchers of removal", "watched~removed"},
}

// idOfNotice returns the id of the document of a notice.
func idOfNotice(n *domain.Notice) string {
	if n.Audience == domain.ForWatchersOfRemoval {
		return removalNoticeID(n.Group.String(), n.Bundle.String())
	}
	return noticeID(n.Audience, n.Group.String(), n.Number)
}

// removalNoticeID returns the id of the notice of a removal. No notice of a Dequeue has the same id.
func removalNoticeID(group, bundle string) string {
	return noticePrefix(domain.ForWatchersOfRemoval, group) + bundle
}

// noticeID returns the id of a notice of a Dequeue. The ids of a group and audience sort by number. The
// name of a group contains no bar.
func noticeID(to domain.Audience, group string, number int64) string {
	return fmt.Sprintf("%s%020d", noticePrefix(to, group), number)
}

// noticePrefix returns the prefix of the ids of the notices of a group for an audience. noticePrefixEnd
// returns a string that sorts after these ids.
func noticePrefix(to domain.Audience, group string) string {
	return noticeAudiences[to].prefix + "|" + group + "|"
}

func noticePrefixEnd(to domain.Audience, group string) string {
	return noticeAudiences[to].prefix + "|" + group + "}"
}

// newNotices returns the notices of the Dequeue of bundle d. g is the gate after the Dequeue.
func newNotices(d *bundleDoc, g *gate, b *domain.Bundle, now time.Time) []*noticeDoc {
	newNotice := func(to domain.Audience) *noticeDoc {
		return &noticeDoc{
			ID: noticeID(to, d.Group, g.Generation), Recipient: d.Recipient, Kind: noticeKind, Audience: noticeAudiences[to].member,
			Group: d.Group, Number: g.Generation, Origin: b.Cabinet.Origin.String(), Bundle: d.ID, Since: millisOf(now), Peeked: d.Peeked,
		}
	}
	var notices []*noticeDoc
	if b.Content == domain.Request {
		n := newNotice(domain.ForDomain)
		n.List = d.List
		notices = append(notices, n)
	}
	if len(g.DequeueRequests) > 0 {
		n := newNotice(domain.ForSubscribers)
		n.Events = b.Count
		notices = append(notices, n)
	}
	if d.Watched {
		n := newNotice(domain.ForWatchers)
		n.Version = d.Changes + 1
		notices = append(notices, n)
	}
	return notices
}

// toAudience returns the audience of the notice.
func (d *noticeDoc) toAudience() (domain.Audience, error) {
	for to, a := range noticeAudiences {
		if a.member == d.Audience {
			return to, nil
		}
	}
	return 0, domain.Errorf(domain.Damaged, "audience %q is unknown", domain.Shorten(d.Audience))
}

func (d *noticeDoc) toNotice() (domain.Notice, error) {
	n := domain.Notice{List: d.List, Events: d.Events, Version: d.Version, Number: d.Number, Since: d.Since.toTime(), Peeked: d.Peeked.decodeSpan()}
	var err error
	if n.Audience, err = d.toAudience(); err == nil {
		n.Recipient, err = domain.ParseActorID(d.Recipient)
	}
	if err == nil {
		n.Origin, err = domain.ParseOrigin(d.Origin)
	}
	if err == nil {
		n.Group, err = domain.ParseGroup(d.Group)
	}
	if err == nil {
		n.Bundle, err = domain.ParseBundleID(d.Bundle)
	}
	if err != nil {
		return n, domain.Errorf(domain.Damaged, "notice %s of %s: %w", d.ID, d.Recipient, err)
	}
	return n, nil
}
