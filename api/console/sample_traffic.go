package console

import (
	"context"
	"net/http"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/messagehub/messagehub/domain"
)

// A SampleSender stores a few events for an actor, as if a domain had announced them. It returns
// the actor and the number of stored events. Only hubs without real users should have one.
type SampleSender func(ctx context.Context) (actor domain.ActorID, n int, err error)

// showSample shows the form that sends sample traffic, and below it the mailbox of the sample actor.
func (v *visit) showSample() error {
	if v.opts.SendSample == nil {
		return errNoSample
	}
	body := []g.Node{
		h.P(g.Text("This hub has its own engine and is not in production, so you can try it: the button stores five events for the actor "), code(SampleActor), g.Text(", as a domain does that announces data. They wait in the mailbox of the actor until it peeks and dequeues them.")),
		v.formTo(link("sample"), button("Send five events")),
	}
	actor, err := domain.ParseActorID(SampleActor)
	if err != nil {
		return err
	}
	mailbox, err := v.sampleMailbox(actor)
	if err != nil {
		return err
	}
	return v.show(&view{title: "Sample traffic", body: append(body, h.H2(g.Text("What has arrived")), mailbox)})
}

// SampleActor is the actor of sample traffic.
const SampleActor = "sample-actor"

var errNoSample = &pageError{http.StatusNotFound, "This hub takes no sample traffic", "A hub on Azure, or with the setting production, has data that others depend on. Start one with its own engine to try it."}

// sampleMailbox returns a table of the actor's cabinets with their numbers of events, and commands
// with which an operator can fetch the events.
func (v *visit) sampleMailbox(actor domain.ActorID) (g.Node, error) {
	found, err := v.opts.Operator.Inspect(v.ctx(), actor)
	if err != nil {
		return nil, err
	}
	t := tableView{
		caption: "Cabinets of the mailbox", empty: "Nothing was ever sent to the actor.",
		columns: []column{{title: "Origin"}, {title: "Content type"}, {title: "Received", isNumber: true}, {title: "Waiting", isNumber: true}},
	}
	for _, c := range found.Cabinets {
		t.rows = append(t.rows, []g.Node{bdi(c.Cabinet.Origin.String()), bdi(c.Cabinet.ContentType.String()), number(c.Received), number(c.Received - c.Acknowledged)})
	}
	return h.Div(
		t.render(),
		g.If(len(found.Cabinets) > 0, g.Group{
			h.P(h.A(h.Href(link("mailboxes", actor.String())), g.Text("Open the mailbox"))),
			h.P(g.Text("The actor fetches a bundle, and confirms it:")),
			h.Pre(h.TabIndex("0"), h.Code(g.Text("messagehub peek --actor "+actor.String()+"\nmessagehub dequeue --actor "+actor.String()+" BUNDLE"))),
		}),
	), nil
}

// sendSample stores sample traffic.
func (v *visit) sendSample() error {
	if v.opts.SendSample == nil {
		return errNoSample
	}
	_, n, err := v.opts.SendSample(v.ctx())
	v.sampled.AddAccepted(n) // counted even after an error, because some events may have been stored
	if err != nil {
		return err
	}
	return v.redirect(link("sample"))
}
