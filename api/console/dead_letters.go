package console

import (
	"context"
	"net/http"
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/deadletters"
	"github.com/messagehub/messagehub/domain/hub"
)

// DeadLetters are the use cases for the dead letters of Service Bus queues. [deadletters.Service]
// implements it.
type DeadLetters interface {
	// Queues returns the queues that may have dead letters.
	Queues() []deadletters.QueueState
	// Queue returns the queue called name.
	Queue(name string) (deadletters.Queue, error)
	// List returns a page of the dead letters of a queue, without bodies.
	List(ctx context.Context, queue string, q deadletters.Query) (deadletters.Page, error)
	// ReadContent returns a dead letter with its body, and records that an operator has read it.
	ReadContent(ctx context.Context, queue string, number int64, by hub.AdminAction) (*deadletters.Content, error)
	// Resend sends a copy of a dead letter to its queue, and deletes the dead
	// letter.
	Resend(ctx context.Context, queue string, number int64, by hub.AdminAction) error
	// Delete deletes a dead letter.
	Delete(ctx context.Context, queue string, number int64, by hub.AdminAction) error
	// ResendSome resends selected dead letters as Resend does, up to a limit.
	ResendSome(ctx context.Context, queue string, of deadletters.Selection, by hub.AdminAction) (deadletters.Progress, error)
	// DeleteSome deletes selected dead letters as Delete does, up to a limit.
	DeleteSome(ctx context.Context, queue string, of deadletters.Selection, by hub.AdminAction) (deadletters.Progress, error)
	// Records returns up to limit records of orders for dead letters of a queue, newest first.
	Records(ctx context.Context, queue string, limit int) ([]deadletters.Record, error)
}

var errNoQueues = &pageError{http.StatusNotFound, "This hub has no queues", "It reaches no Service Bus, so it has no dead letters."}

// deadLetterPage is the maximum number of dead letters on one page.
const deadLetterPage = 50

// deadLetterQueues lists the queues whose dead letters the hub can read.
func (v *visit) deadLetterQueues() error {
	if v.opts.DeadLetters == nil {
		return errNoQueues
	}
	t := tableView{caption: "Queues", columns: []column{{title: "Queue"}, {title: "Dead letters", isNumber: true}, {title: "What its messages are"}}, empty: "The hub receives from no queue."}
	for _, q := range v.opts.DeadLetters.Queues() {
		count := g.Text("not known")
		if q.IsKnown {
			count = number(q.DeadLetters)
		}
		t.rows = append(t.rows, []g.Node{anchor(link("dead-letters", q.Name), q.Name), count, bdi(q.Use)})
	}
	return v.show(&view{title: "Dead letters", body: []g.Node{
		h.P(g.Text("Messages that the hub or a domain could not process, so the bus keeps them separately. Look at one, repair the cause, then send it again or delete it.")),
		t.render(),
	}})
}

// deadLetters lists dead letters of a queue.
func (v *visit) deadLetters() error {
	queue, err := v.queue()
	if err != nil {
		return err
	}
	reason, after := v.r.URL.Query().Get("reason"), int64(0)
	if text := v.r.URL.Query().Get("after"); text != "" {
		if after, err = strconv.ParseInt(text, 10, 64); err != nil {
			return domain.Errorf(domain.Invalid, "after: want a sequence number, got %q", domain.Shorten(text))
		}
	}
	page, err := v.opts.DeadLetters.List(v.ctx(), queue.Name, deadletters.Query{After: after, Reason: reason, Limit: deadLetterPage})
	if err != nil {
		return err
	}
	t := tableView{
		caption: "Dead letters, in the order of their numbers, in UTC",
		columns: []column{{title: "Number"}, {title: "Reason"}, {title: "Description"}, {title: "Sent"}, {title: "Message"}, {title: "Bytes", isNumber: true}, {title: "Deliveries", isNumber: true}, {title: "Orders"}},
		empty:   "There are no dead letters in this list.",
	}
	for i := range page.DeadLetters {
		t.rows = append(t.rows, v.rowOfDeadLetter(&queue, &page.DeadLetters[i]))
	}
	first, next := "", ""
	if after > 0 {
		first = withQuery(link("dead-letters", queue.Name), "reason", reason)
	}
	if page.Next > 0 {
		next = withQuery(link("dead-letters", queue.Name), "reason", reason, "after", strconv.FormatInt(page.Next, 10))
	}
	body := []g.Node{
		h.P(bdi(queue.Use)),
		g.If(queue.NoResend != "", h.P(g.Text("Dead letters of this queue are not sent again: "+queue.NoResend+"."))),
		h.Form(
			h.Class("filters"), h.Method("get"), h.Action(link("dead-letters", queue.Name)),
			field{name: "reason", label: "Reason", value: reason, kind: "search", isOptional: true, limit: 200}.render(), button("Show"),
		),
		t.render(), pager(first, next),
	}
	if n := len(page.DeadLetters); n > 0 && reason != "" && v.mayOrder() {
		fields := []string{"reason", reason, "after", strconv.FormatInt(after, 10), "through", strconv.FormatInt(page.DeadLetters[n-1].Number, 10)}
		body = append(body, h.Ul(
			h.Class("actions"),
			g.If(queue.NoResend == "", h.Li(h.A(h.Href(withQuery(link("dead-letters", queue.Name, "some", "resend"), fields...)), g.Text("Send these again")))),
			h.Li(h.A(h.Href(withQuery(link("dead-letters", queue.Name, "some", "delete"), fields...)), g.Text("Delete these"))),
		))
	}
	body = append(body, h.P(h.A(h.Href(link("dead-letters", queue.Name, "records")), g.Text("Records of operators"))))
	return v.show(&view{title: "Dead letters of", about: queue.Name, body: body})
}

// queue returns the queue whose name is in the path.
func (v *visit) queue() (deadletters.Queue, error) {
	if v.opts.DeadLetters == nil {
		return deadletters.Queue{}, errNoQueues
	}
	return v.opts.DeadLetters.Queue(v.path("queue"))
}

func (v *visit) rowOfDeadLetter(queue *deadletters.Queue, d *deadletters.DeadLetter) []g.Node {
	name := strconv.FormatInt(d.Number, 10)
	var orders g.Group
	if v.mayOrder() {
		orders = append(orders, h.A(h.Href(link("dead-letters", queue.Name, "letters", name, "look")), g.Text("Look")), g.Text(" "))
		if queue.NoResend == "" {
			orders = append(orders, h.A(h.Href(link("dead-letters", queue.Name, "letters", name, "resend")), g.Text("Send again")), g.Text(" "))
		}
		orders = append(orders, h.A(h.Href(link("dead-letters", queue.Name, "letters", name, "delete")), g.Text("Delete")))
	}
	reason := g.Node(g.Text("–"))
	if d.Reason != "" {
		reason = anchor(withQuery(link("dead-letters", queue.Name), "reason", d.Reason), d.Reason)
	}
	description := g.Group{bdi(d.Description)}
	if d.ResentBy != "" {
		description = append(description, g.Text(" (sent again before, by "), bdi(d.ResentBy), g.Text(")"))
	}
	return []g.Node{g.Text(name), reason, description, moment(d.EnqueuedAt), code(d.MessageID), number(d.Size), number(int64(d.DeliveryCount)), orders}
}

// orderDeadLetter handles the form of an order for one dead letter: it shows the form, or executes
// the order.
func (v *visit) orderDeadLetter() error {
	queue, err := v.queue()
	if err != nil {
		return err
	}
	n, err := strconv.ParseInt(v.path("number"), 10, 64)
	if err != nil {
		return errNoPage
	}
	page, err := v.opts.DeadLetters.List(v.ctx(), queue.Name, deadletters.Query{After: n - 1, Limit: 1})
	if err != nil {
		return err
	}
	if len(page.DeadLetters) == 0 || page.DeadLetters[0].Number != n {
		return &pageError{http.StatusConflict, "The dead letter is not there", "Nothing was done. It may have been sent again or deleted meanwhile; see the records of the queue."}
	}
	d := &page.DeadLetters[0]
	c := &confirmation{
		about: strconv.FormatInt(n, 10),
		state: []fact{
			textFact("Queue", queue.Name), textFact("Number", strconv.FormatInt(n, 10)), textFact("Message", d.MessageID), textFact("Reason", d.Reason),
			textFact("Description", d.Description), textFact("Deliveries", strconv.Itoa(d.DeliveryCount)),
		},
		after: withQuery(link("dead-letters", queue.Name, "records"), "done", "1"),
	}
	switch v.path("order") {
	case "look":
		c.title, c.button, c.effect = "Look at dead letter", "Show the message", "The page shows the message with its body. Your access is recorded."
		return v.confirmDeadLetter(queue.Name, n, c)
	case "resend":
		c.title, c.button, c.effect = "Send again dead letter", "Send it again", "A copy of the message is sent to its queue, and the dead letter is removed once the bus has the copy. Before that, repair what made it a dead letter."
		c.carryOut = func(by hub.AdminAction) error { return v.opts.DeadLetters.Resend(v.ctx(), queue.Name, n, by) }
	case "delete":
		c.title, c.button, c.effect, c.isDanger = "Delete dead letter", "Delete it", "The message is deleted permanently. Its events are not stored, unless they also came in another message.", true
		c.carryOut = func(by hub.AdminAction) error { return v.opts.DeadLetters.Delete(v.ctx(), queue.Name, n, by) }
	default:
		return errNoPage
	}
	c.typed, c.typedLabel = queue.Name, "Queue"
	return v.confirm(c)
}

// confirmDeadLetter shows a dead letter with its body, once the operator has given a reason.
func (v *visit) confirmDeadLetter(queue string, n int64, c *confirmation) error {
	var found *deadletters.Content
	c.carryOut = func(by hub.AdminAction) (err error) {
		found, err = v.opts.DeadLetters.ReadContent(v.ctx(), queue, n, by)
		return err
	}
	c.show = func() error { return v.showDeadLetter(queue, found) }
	return v.confirm(c)
}

// showDeadLetter shows a dead letter with its body.
func (v *visit) showDeadLetter(queue string, d *deadletters.Content) error {
	all := []fact{
		{"Queue", bdi(queue)},
		{"Message", code(d.MessageID)},
		{"Reason", bdi(d.Reason)},
		{"Description", bdi(d.Description)},
		{"Sent", moment(d.EnqueuedAt)},
		{"Deliveries", number(int64(d.DeliveryCount))},
		{"Content type", bdi(d.ContentType)},
		{"Subject", bdi(d.Subject)},
		{"Bytes", number(d.Size)},
	}
	if d.Session != nil {
		all = append(all, fact{"Session", bdi(*d.Session)})
	}
	t := tableView{caption: "Application properties", columns: []column{{title: "Name"}, {title: "Value"}}, empty: "It has no application properties."}
	for _, name := range sortedKeys(d.Properties) {
		t.rows = append(t.rows, []g.Node{bdi(name), bdi(d.Properties[name])})
	}
	return v.show(&view{title: "Dead letter", about: strconv.FormatInt(d.Number, 10), body: []g.Node{
		notice(good, h.P(g.Text("Your access to this message is recorded."))),
		facts(all...), t.render(),
		h.H2(g.Text("Body")), shownBody(d.Body),
		g.If(d.IsCut, h.P(g.Text("The rest of the body is not shown."))),
		h.P(h.A(h.Href(link("dead-letters", queue)), g.Text("Dead letters of the queue"))),
	}})
}

// orderDeadLetters handles the form of an order for several dead letters: it shows the form, or
// executes the order.
func (v *visit) orderDeadLetters() error {
	queue, err := v.queue()
	if err != nil {
		return err
	}
	of := deadletters.Selection{Reason: v.value("reason")}
	for _, f := range []struct {
		name string
		at   *int64
	}{{"after", &of.After}, {"through", &of.Through}} {
		if *f.at, err = strconv.ParseInt(v.value(f.name), 10, 64); err != nil {
			return &pageError{http.StatusBadRequest, "The order cannot be read", "Open it from the list of dead letters."}
		}
	}
	page, err := v.opts.DeadLetters.List(v.ctx(), queue.Name, deadletters.Query{After: of.After, Reason: of.Reason, Limit: deadletters.MaxPage})
	if err != nil {
		return err
	}
	count := 0
	for i := range page.DeadLetters {
		if page.DeadLetters[i].Number <= of.Through {
			count++
		}
	}
	if count == 0 {
		return &pageError{http.StatusConflict, "The dead letters are not there", "Nothing was done. They may have been sent again or deleted meanwhile; see the records of the queue."}
	}
	c := &confirmation{
		about: queue.Name, typed: queue.Name, typedLabel: "Queue",
		state: []fact{
			textFact("Reason", of.Reason), textFact("Dead letters", strconv.Itoa(count)),
			textFact("Numbers", "above "+strconv.FormatInt(of.After, 10)+", up to "+strconv.FormatInt(of.Through, 10)),
		},
		more:  []g.Node{hidden("reason", of.Reason), hidden("after", strconv.FormatInt(of.After, 10)), hidden("through", strconv.FormatInt(of.Through, 10))},
		after: withQuery(link("dead-letters", queue.Name, "records"), "done", "1"),
	}
	carryOut := v.opts.DeadLetters.ResendSome
	switch v.path("order") {
	case "resend":
		c.title, c.button, c.effect = "Send again dead letters of", "Send them again", "A copy of each message is sent to the queue, and the dead letter is removed once the bus has the copy."
	case "delete":
		carryOut = v.opts.DeadLetters.DeleteSome
		c.title, c.button, c.effect, c.isDanger = "Delete dead letters of", "Delete them", "The messages are deleted permanently.", true
	default:
		return errNoPage
	}
	c.carryOut = func(by hub.AdminAction) error {
		progress, err := carryOut(v.ctx(), queue.Name, of, by)
		if err == nil && progress.Failure != "" {
			err = domain.Errorf(domain.Unavailable, "the order has ended after %d of them: %s", progress.Letters, progress.Failure)
		}
		return err
	}
	return v.confirm(c)
}

// deadLetterRecords shows the records of orders for dead letters of a queue.
func (v *visit) deadLetterRecords() error {
	queue, err := v.queue()
	if err != nil {
		return err
	}
	found, err := v.opts.DeadLetters.Records(v.ctx(), queue.Name, shownRecords)
	if err != nil {
		return err
	}
	t := tableView{
		caption: "Orders, the newest first, in UTC",
		columns: []column{{title: "When"}, {title: "What"}, {title: "Who"}, {title: "Why"}, {title: "About"}, {title: "Outcome"}, {title: "Dead letters", isNumber: true}},
		empty:   "No operator has given an order about dead letters of this queue.",
	}
	for i := range found {
		r := &found[i]
		about := g.Group{g.Text("number " + strconv.FormatInt(r.Number, 10)), g.If(r.MessageID != "", g.Group{g.Text(", message "), code(r.MessageID)})}
		if r.Number == 0 {
			about = g.Group{g.Text("reason "), bdi(r.Reason)}
		}
		outcome := bdi(r.Outcome)
		if r.Outcome == "" {
			outcome = g.Text("not known; it is under way, or its node has ended")
		}
		t.rows = append(t.rows, []g.Node{moment(r.When), g.Text(r.What), bdi(r.Who), bdi(r.Why), about, outcome, number(int64(r.Letters))})
	}
	return v.show(&view{title: "Records of dead letters of", about: queue.Name, body: []g.Node{
		g.If(v.r.URL.Query().Get("done") != "" && len(found) > 0, notice(good, h.P(g.Text("The order was carried out. Its record is the first below.")))),
		t.render(),
		h.P(h.A(h.Href(link("dead-letters", queue.Name)), g.Text("Dead letters of the queue"))),
	}})
}
