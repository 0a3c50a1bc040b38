package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
)

// shownFindings is the maximum number of findings on a page.
const shownFindings = 200

// checkRefresh is the interval at which the page of a running check refreshes.
const checkRefresh = 2 * time.Second

// A check is the last check that was started on a page. A node runs one check at a time, which is
// started on a page or through the API.
type check struct {
	mu      sync.Mutex
	cancel  context.CancelFunc // nil before the first check
	isDone  bool
	actor   domain.ActorID // actor that is checked; zero for all actors
	repair  bool
	by      string
	began   time.Time
	ended   time.Time
	report  hub.CheckReport
	failure error
}

// endCheck ends the running check.
func (c *Console) endCheck() {
	c.check.mu.Lock()
	defer c.check.mu.Unlock()
	if c.check.cancel != nil {
		c.check.cancel()
	}
}

// showCheck shows the form that starts a check, and the state of the last check.
func (v *visit) showCheck() error { return v.showCheckWith(0, "") }

func (v *visit) showCheckWith(status int, fault string) error {
	body := []g.Node{
		h.P(g.Text("A check reads everything that is stored, while the hub runs, and compares it with the rules of the hub. It costs request units, and changes nothing unless you choose repair.")),
		g.Iff(v.mayOrder() && v.opts.Check != nil, func() g.Node {
			return v.formTo(link("check"),
				field{name: "actor", label: "Actor", hint: "Empty: all mailboxes, and everything else.", value: v.value("actor"), fault: fault, isOptional: true, limit: 64}.render(),
				choiceField{name: "repair", label: "What to do about findings", value: v.value("repair"), options: []navigationEntry{{"", "show them"}, {"yes", "repair what can be repaired without losing events"}}}.render(),
				button("Start a check"),
			)
		}),
		g.If(v.opts.Check == nil, h.P(g.Text("The store of this hub cannot be checked."))),
		v.checkState(),
	}
	return v.show(&view{status: status, title: "Check", body: body})
}

// checkPart responds with the state of the last check, for the part of the page that shows it.
func (v *visit) checkPart() error { return v.showFragment(v.checkState()) }

// checkState returns the progress or the result of the last check. While the check runs, this part
// of the page refreshes itself.
func (v *visit) checkState() g.Node {
	c := &v.check
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cancel == nil {
		return h.Div(h.ID("check"), h.P(h.Class("empty"), g.Text("No check was started on this page since the node started.")))
	}
	about := "all that is stored"
	if !c.actor.IsZero() {
		about = "the mailbox of " + c.actor.String()
	}
	state, nodes := badge(mild, "runs"), g.Group{}
	switch {
	case c.isDone && c.failure != nil:
		state = badge(bad, "has failed")
		nodes = append(nodes, notice(bad, h.P(g.Text("The check stopped: "), bdi(toSentence(c.failure)), g.Text(" Its findings until then are below. Start it again."))))
	case c.isDone && c.report.Found == 0:
		state = badge(good, "has found nothing")
	case c.isDone:
		state = badge(bad, "has found something")
	}
	until := v.opts.Clock()
	if c.isDone {
		until = c.ended
	}
	all := []fact{
		{"Check of", bdi(about)},
		{"State", state},
		{"Started by", bdi(c.by)},
		{"Started", moment(c.began)},
		{"Time", g.Text(duration(until.Sub(c.began)))},
		{"Mailboxes", number(c.report.Recipients)},
		{"Events", number(c.report.Events)},
		{"Open bundles", number(c.report.Open)},
		{"Findings", number(c.report.Found)},
		{"Repaired", number(c.report.Repaired)},
	}
	if c.report.Objects > 0 {
		all = append(all, fact{"Objects", number(c.report.Objects)})
	}
	nodes = append(nodes, facts(all...))
	if c.report.Found > 0 {
		nodes = append(nodes, tableOfFindings(c.report.Findings))
	}
	attributes := g.Group{h.ID("check")}
	if !c.isDone {
		attributes = append(attributes, hx("get", link("part", "check")), refreshEvery(checkRefresh), hx("swap", "outerHTML"))
		nodes = append(nodes, h.P(h.A(h.Href(link("check")), g.Text("Show its progress"))))
	}
	return h.Div(attributes, h.H2(g.Text("The last check")), nodes)
}

func tableOfFindings(findings []hub.Finding) g.Node {
	t := tableView{caption: "Findings", columns: []column{{title: "Rule"}, {title: "Kind"}, {title: "Mailbox or bucket"}, {title: "Document"}, {title: "What"}, {title: "State"}}}
	if len(findings) > shownFindings {
		t.caption = fmt.Sprintf("The first %d findings", shownFindings)
		findings = findings[:shownFindings]
	}
	for i := range findings {
		f := &findings[i]
		about := bdi(f.Bucket)
		if f.Recipient != "" {
			about = anchor(link("mailboxes", f.Recipient), f.Recipient)
		}
		state := badge(warn, "not repaired")
		switch {
		case f.Repaired:
			state = badge(good, "repaired")
		case f.Damage:
			state = badge(bad, "damage")
		}
		rule := f.Rule
		if rule == "" {
			rule = "–"
		}
		t.rows = append(t.rows, []g.Node{g.Text(rule), g.Text(f.Kind), about, code(f.Where), bdi(f.Text), state})
	}
	return t.render()
}

// startCheck starts a check that continues after the request has ended.
func (v *visit) startCheck() error {
	if v.opts.Check == nil {
		return v.redirect(link("check"))
	}
	options := hub.CheckOptions{Repair: v.value("repair") == "yes"}
	if name := v.value("actor"); name != "" {
		actor, err := domain.ParseActorID(name)
		if err != nil {
			return v.showCheckWith(http.StatusUnprocessableEntity, toSentence(err))
		}
		options.Actor = actor
	}
	release, err := v.host.AcquireCheck()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(v.ctx()))
	c := &v.check
	c.mu.Lock()
	c.cancel, c.isDone, c.failure, c.report = cancel, false, nil, hub.CheckReport{}
	c.actor, c.repair, c.by, c.began = options.Actor, options.Repair, v.operatorName(), v.opts.Clock()
	c.mu.Unlock()
	options.Progress = func(report hub.CheckReport) {
		c.mu.Lock()
		defer c.mu.Unlock()
		report.Findings = append([]hub.Finding(nil), report.Findings...)
		c.report = report
	}
	checker := v.opts.Check
	v.work.Go(func() {
		defer release()
		defer cancel()
		report, err := runCheck(ctx, checker, options)
		c.mu.Lock()
		defer c.mu.Unlock()
		if err == nil || report.Recipients > 0 || report.Found > 0 {
			c.report = report
		}
		c.isDone, c.failure, c.ended = true, err, v.opts.Clock()
	})
	return v.redirect(link("check"))
}

// runCheck runs a check, and returns a panic as an error.
func runCheck(ctx context.Context, check hub.Checker, options hub.CheckOptions) (report hub.CheckReport, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	report, err = check(ctx, options)
	if err != nil && ctx.Err() != nil {
		err = errors.New("the node was asked to stop")
	}
	return report, err
}
