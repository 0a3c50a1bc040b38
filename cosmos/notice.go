package cosmos

import (
	"fmt"
	"time"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

// A noticeDoc is a notice that has not been delivered to its domain. The batch that closes
// the bundle creates it, and it is deleted after its delivery; it does not expire. A bundle
// in another content mode than request has none.
type noticeDoc struct {
	ID        string `json:"id"`
	Recipient string `json:"recipient"`
	Kind      string `json:"kind"` // always "notice"
	Group     string `json:"group"`
	Number    int64  `json:"number"` // generation of the gate by which the bundle was closed
	Origin    string `json:"origin"`
	Bundle    string `json:"bundle"`
	List      string `json:"list"`
	Since     millis `json:"since"`
	client.FormatNumber
}

const noticeKind = "notice"

// noticeID sorts the notices of a group in the order of their numbers. A bar is in
// no group's name.
func noticeID(group string, number int64) string {
	return fmt.Sprintf("%s%020d", noticePrefix(group), number)
}

// noticePrefix is the beginning of the ids of the notices of a group; noticePrefixEnd is
// greater than all of them.
func noticePrefix(group string) string { return noticeKind + "|" + group + "|" }

func noticePrefixEnd(group string) string { return noticeKind + "|" + group + "}" }

// newNotice returns the notice of bundle d, which g is now past. It is nil if the bundle has
// another content mode than request.
func newNotice(d *bundleDoc, g *gate, b *domain.Bundle, now time.Time) *noticeDoc {
	if b.Content != domain.Request {
		return nil
	}
	return &noticeDoc{
		ID: noticeID(d.Group, g.Generation), Recipient: d.Recipient, Kind: noticeKind,
		Group: d.Group, Number: g.Generation, Origin: b.Cabinet.Origin.String(),
		Bundle: d.ID, List: d.List, Since: millisOf(now),
	}
}

func (d *noticeDoc) notice() (domain.Notice, error) {
	n := domain.Notice{List: d.List, Number: d.Number, Since: d.Since.time()}
	var err error
	if n.Recipient, err = domain.ParseActorID(d.Recipient); err == nil {
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
