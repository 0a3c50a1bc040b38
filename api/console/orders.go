package console

import (
	"context"
	"net/http"
	"strconv"

	g "maragu.dev/gomponents"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
)

// An orderKind is a kind of order that an operator can give for the mailbox of an actor, such as
// freeze.
type orderKind struct {
	name, title string
	button      string
	effect      string
	isDanger    bool

	// state returns the facts on which the operator's decision is based. It fails if the order is
	// impossible in the current state.
	state func(*orderTarget, *hub.Inspection) ([]fact, error)

	carryOut func(ctx context.Context, o Operator, t *orderTarget, by hub.AdminAction) error
}

// An orderTarget is the object of an order.
type orderTarget struct {
	actor   domain.ActorID
	bundle  domain.BundleID   // set for the orders release and skip
	group   domain.Group      // set for the order replay
	cabinet domain.CabinetKey // set for the order abandon
}

// orderKinds contains the kinds of orders. Their names are parts of page paths.
var orderKinds = []orderKind{
	{
		name: "freeze", title: "Freeze", button: "Freeze the mailbox",
		effect: "The actor can neither peek nor dequeue until the mailbox is thawed. Events for it are still stored.",
		state:  stateOfMailbox,
		carryOut: func(ctx context.Context, o Operator, t *orderTarget, by hub.AdminAction) error {
			return o.Freeze(ctx, t.actor, by)
		},
	},
	{
		name: "thaw", title: "Thaw", button: "Thaw the mailbox",
		effect: "The actor can peek and dequeue again.",
		state:  stateOfMailbox,
		carryOut: func(ctx context.Context, o Operator, t *orderTarget, by hub.AdminAction) error {
			return o.Thaw(ctx, t.actor, by)
		},
	},
	{
		name: "release", title: "Release a bundle of", button: "Release the bundle",
		effect: "The open bundle is withdrawn, and its events are the first that wait again. The next Peek opens another bundle, with another id.",
		state:  stateOfBundle,
		carryOut: func(ctx context.Context, o Operator, t *orderTarget, by hub.AdminAction) error {
			return o.Release(ctx, t.actor, t.bundle, by)
		},
	},
	{
		name: "skip", title: "Skip a bundle of", button: "Skip the bundle", isDanger: true,
		effect: "The open bundle is closed, though its actor has not confirmed it. Its events will not be delivered again, unless the bundle is replayed while it is retained.",
		state:  stateOfBundle,
		carryOut: func(ctx context.Context, o Operator, t *orderTarget, by hub.AdminAction) error {
			return o.Skip(ctx, t.actor, t.bundle, by)
		},
	},
	{
		name: "replay", title: "Replay a bundle of", button: "Replay the last bundle",
		effect: "The bundle that was closed last in the group is opened again, and the next Peek returns it unchanged. The actor receives its events again.",
		state:  stateOfGroup,
		carryOut: func(ctx context.Context, o Operator, t *orderTarget, by hub.AdminAction) error {
			_, err := o.Replay(ctx, t.actor, t.group, by)
			return err
		},
	},
	{
		name: "abandon", title: "Abandon lost events of", button: "Abandon the events", isDanger: true,
		effect: "The events at the front of the cabinet that the store has lost are skipped, up to the next one that can be read. They stay lost, and no bundle that was closed before can be replayed.",
		state:  stateOfCabinet,
		carryOut: func(ctx context.Context, o Operator, t *orderTarget, by hub.AdminAction) error {
			_, err := o.Abandon(ctx, t.cabinet, by)
			return err
		},
	},
}

// giveOrder handles the form of an order for a mailbox: it shows the form, or executes the order.
func (v *visit) giveOrder() error {
	actor, err := v.actor()
	if err != nil {
		return err
	}
	kind := findOrder(v.path("order"))
	if kind == nil {
		return errNoPage
	}
	target, fields, err := v.orderTarget(actor)
	if err != nil {
		return err
	}
	found, err := v.opts.Operator.Inspect(v.ctx(), actor)
	if err != nil {
		return err
	}
	state, err := kind.state(target, &found)
	if err != nil {
		return err
	}
	return v.confirm(&confirmation{
		title: kind.title, about: actor.String(), effect: kind.effect, button: kind.button, isDanger: kind.isDanger,
		state: state, more: fields, typed: actor.String(), typedLabel: "Actor",
		carryOut: func(by hub.AdminAction) error { return kind.carryOut(v.ctx(), v.opts.Operator, target, by) },
		after:    withQuery(link("mailboxes", actor.String(), "records"), "done", kind.name),
	})
}

func findOrder(name string) *orderKind {
	for i := range orderKinds {
		if orderKinds[i].name == name {
			return &orderKinds[i]
		}
	}
	return nil
}

// orderTarget reads the target of an order from the form or the link. It also returns hidden fields
// with which the form submits the target again.
func (v *visit) orderTarget(actor domain.ActorID) (t *orderTarget, fields []g.Node, err error) {
	t = &orderTarget{actor: actor, cabinet: domain.CabinetKey{Recipient: actor}}
	for _, f := range []struct {
		name  string
		parse func(string) error
	}{
		{"bundle", func(s string) (err error) { t.bundle, err = domain.ParseBundleID(s); return err }},
		{"group", func(s string) (err error) { t.group, err = domain.ParseGroup(s); return err }},
		{"origin", func(s string) (err error) { t.cabinet.Origin, err = domain.ParseOrigin(s); return err }},
		{"contentType", func(s string) (err error) { t.cabinet.ContentType, err = domain.ParseContentType(s); return err }},
	} {
		text := v.value(f.name)
		if text == "" {
			continue
		}
		if err := f.parse(text); err != nil {
			return nil, nil, &pageError{http.StatusBadRequest, "The order cannot be read", toSentence(err)}
		}
		fields = append(fields, hidden(f.name, text))
	}
	return t, fields, nil
}

func stateOfMailbox(_ *orderTarget, found *hub.Inspection) ([]fact, error) {
	return []fact{textFact("Mailbox", frozenWord(found.Frozen))}, nil
}

func frozenWord(isFrozen bool) string {
	if isFrozen {
		return "frozen"
	}
	return "not frozen"
}

func stateOfBundle(t *orderTarget, found *hub.Inspection) ([]fact, error) {
	for _, group := range found.Groups {
		if b := group.Open; b != nil && b.ID == t.bundle {
			return []fact{
				textFact("Bundle", b.ID.String()), textFact("Group", group.Group.String()), textFact("Origin", b.Cabinet.Origin.String()),
				textFact("Events", groupDigits(int64(b.Count))), textFact("Generation of the gate", strconv.FormatInt(group.Generation, 10)),
			}, nil
		}
	}
	return nil, &pageError{http.StatusConflict, "The bundle is not open", "Nothing was done. The bundle " + t.bundle.String() + " was dequeued, released or skipped, or never was in this mailbox. The records of the mailbox have what operators did."}
}

func stateOfGroup(t *orderTarget, found *hub.Inspection) ([]fact, error) {
	for _, group := range found.Groups {
		if group.Group == t.group {
			open := "none"
			if group.Open != nil {
				open = group.Open.ID.String()
			}
			return []fact{
				textFact("Group", group.Group.String()), textFact("Open bundle", open),
				textFact("Generation of the gate", strconv.FormatInt(group.Generation, 10)),
			}, nil
		}
	}
	return nil, &pageError{http.StatusConflict, "The mailbox has no such group", "Nothing was done. No bundle was ever opened in the group " + t.group.String() + " of this mailbox."}
}

func stateOfCabinet(t *orderTarget, found *hub.Inspection) ([]fact, error) {
	for _, cabinet := range found.Cabinets {
		if cabinet.Cabinet == t.cabinet {
			return []fact{
				textFact("Origin", t.cabinet.Origin.String()), textFact("Content type", t.cabinet.ContentType.String()), textFact("Group", cabinet.Group.String()),
				textFact("Waiting events", groupDigits(cabinet.Received-cabinet.Acknowledged)), textFact("Acknowledged up to", strconv.FormatInt(int64(cabinet.AcknowledgedThrough), 10)),
			}, nil
		}
	}
	return nil, &pageError{http.StatusConflict, "The mailbox has no such cabinet", "Nothing was done. No event of that origin and content type was ever stored in this mailbox."}
}
