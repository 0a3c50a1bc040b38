package console

import (
	"context"
	"net/url"
	"strconv"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/receiverlist"
	"github.com/messagehub/messagehub/domain/watch"
)

// Watches are the use cases for the watches of all owners. [watch.Service] implements it.
type Watches interface {
	// List returns up to limit watches of an owner, beginning at offset.
	List(ctx context.Context, owner domain.ActorID, offset, limit int) ([]*watch.Watch, error)
	// Get returns a watch of an owner.
	Get(ctx context.Context, owner domain.ActorID, id domain.WatchID) (*watch.Watch, error)
	// Attempts returns the last calls to a watch.
	Attempts(ctx context.Context, owner domain.ActorID, id domain.WatchID) (*watch.Attempts, error)
}

const (
	shownWatches   = 50 // maximum number of watches on a page
	maxWatchOffset = 1_000_000
)

// watches lists the watches of one owner, or all watches that wait for calls.
func (v *visit) watches() error {
	if v.opts.Receivers == nil || v.opts.Watches == nil {
		return errNoReceivers
	}
	query := v.r.URL.Query()
	owner, fault := strings.TrimSpace(query.Get("owner")), ""
	var list g.Node
	actor, err := domain.ParseActorID(owner)
	switch {
	case owner == "":
		found, err := v.opts.Receivers.List(v.ctx(), receiverlist.Query{Kind: receiverlist.Watch, State: query.Get("state"), After: query.Get("after")})
		if err != nil {
			return err
		}
		list = g.Group{
			h.P(g.Text("Watches to which the hub has not delivered a change. Type an owner to see all of its watches.")),
			v.receiverTable("Watches", "No watch is in this part of the list.", found.Receivers),
			receiverPager(link("watches"), query.Get("state"), query.Get("after"), found.Next),
		}
	case err != nil:
		fault = toSentence(err)
	default:
		if list, err = v.watchesOf(actor, query.Get("offset")); err != nil {
			return err
		}
	}
	return v.show(&view{title: "Watches", body: []g.Node{
		h.Form(
			h.Class("filters"), h.Method("get"), h.Action(link("watches")),
			field{name: "owner", label: "Owner", value: owner, fault: fault, kind: "search", isOptional: true}.render(),
			choiceField{name: "state", label: "State (for all owners)", value: query.Get("state"), options: receiverStateOptions()}.render(),
			button("Show"),
		),
		list,
	}})
}

// watchesOf returns a table of the watches of an owner.
func (v *visit) watchesOf(owner domain.ActorID, offsetText string) (g.Node, error) {
	offset := 0
	if offsetText != "" {
		var err error
		if offset, err = strconv.Atoi(offsetText); err != nil || offset < 0 || offset > maxWatchOffset {
			return nil, domain.Errorf(domain.Invalid, "offset: want a whole number of 0 to %d, got %q", maxWatchOffset, domain.Shorten(offsetText))
		}
	}
	found, err := v.opts.Watches.List(v.ctx(), owner, offset, shownWatches)
	if err != nil {
		return nil, err
	}
	t := tableView{
		caption: "Watches of an owner, the oldest first, in UTC",
		columns: []column{{title: "Watch"}, {title: "Resource"}, {title: "Outstanding", isNumber: true}, {title: "Delivered", isNumber: true}, {title: "Failed", isNumber: true}, {title: "Created"}, {title: "Host"}},
		empty:   "The owner has no watch in this part of the list.",
	}
	for _, w := range found {
		t.rows = append(t.rows, []g.Node{
			anchor(link("watches", owner.String(), w.ID.String()), w.ID.String()), bdi(resourcePath(w.Resource)),
			number(outstanding(w)), number(w.Delivered), number(w.Errored), moment(w.Created), bdi(callbackHost(w.CallbackURL)),
		})
	}
	first, next := "", ""
	if offset > 0 {
		first = withQuery(link("watches"), "owner", owner.String())
	}
	if len(found) == shownWatches {
		next = withQuery(link("watches"), "owner", owner.String(), "offset", strconv.Itoa(offset+shownWatches))
	}
	return g.Group{t.render(), pager(first, next)}, nil
}

// outstanding returns the number of changes that the watch has not yet reported to its receiver.
func outstanding(w *watch.Watch) int64 {
	return max(0, w.Triggered-w.Delivered-w.Errored-w.Cancelled)
}

// resourcePath returns the path of a resource of this hub.
func resourcePath(uri string) string {
	u, err := url.Parse(uri)
	if err != nil {
		return uri
	}
	return u.Path
}

// callbackHost returns the host of a URL. It omits the path and query, which may contain secrets.
func callbackHost(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return u.Host
}

// watch shows a watch, with its last calls.
func (v *visit) watch() error {
	if v.opts.Watches == nil {
		return errNoReceivers
	}
	owner, err := v.actor()
	if err != nil {
		return err
	}
	id, err := domain.ParseWatchID(v.path("watch"))
	if err != nil {
		return errNoPage
	}
	w, err := v.opts.Watches.Get(v.ctx(), owner, id)
	if err != nil {
		return err
	}
	attempts, err := v.opts.Watches.Attempts(v.ctx(), owner, id)
	if err != nil {
		return err
	}
	state := badge(good, "nothing is outstanding")
	if outstanding(w) > 0 {
		state = badge(mild, "changes are outstanding")
	}
	if n := len(attempts.Last); n > 0 && attempts.Last[n-1].Error != "" {
		state = g.Group{badge(bad, "the last call failed"), g.Text(" "), bdi(attempts.Last[n-1].Error)}
	}
	return v.show(&view{title: "Watch", about: id.String(), body: []g.Node{
		facts(
			fact{"State", state}, fact{"Next attempt", moment(attempts.Next)}, fact{"Outstanding changes", number(outstanding(w))},
			fact{"Changes", number(w.Triggered)}, fact{"Delivered", number(w.Delivered)}, fact{"Failed", number(w.Errored)}, fact{"Cancelled", number(w.Cancelled)},
			fact{"Owner", anchor(withQuery(link("watches"), "owner", owner.String()), owner.String())},
			fact{"Resource", bdi(resourcePath(w.Resource))}, fact{"Host", bdi(callbackHost(w.CallbackURL))}, fact{"Created", moment(w.Created)},
		),
		attemptTable(attempts.Last),
	}})
}
