package console

import (
	"context"
	"net/http"
	"net/url"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/ledger"
)

// Objects are the use cases for the objects in the ledger, and for the jobs that read or change
// them. [ledger.Service] implements it.
type Objects interface {
	// List returns a page of the rows that match q.
	List(ctx context.Context, q ledger.Query) (ledger.Page, error)
	// History returns a page of the rows of one object, newest first.
	History(ctx context.Context, id ledger.RowID, limit int, token string) (ledger.Page, error)
	// ListJobs returns up to limit jobs that have the kind of before and began earlier than before,
	// newest first.
	ListJobs(ctx context.Context, before domain.JobID, limit int) ([]domain.Job, error)
	// Job returns a job.
	Job(ctx context.Context, id domain.JobID) (domain.Job, error)
	// StopJob ends a running job.
	StopJob(ctx context.Context, id domain.JobID) (domain.Job, error)
}

var errNoObjects = &pageError{http.StatusNotFound, "This hub keeps no objects", "Its store has no containers for them. Run messagehub provision, and restart the hub."}

const (
	shownObjects = 50 // maximum number of rows on a page
	overviewJobs = 5  // maximum number of jobs of each kind on the first page
	shownJobs    = 50 // maximum number of jobs on a page of one kind
)

// objects shows a search for objects by bucket and key, and the newest jobs.
func (v *visit) objects() error {
	if v.opts.Objects == nil {
		return errNoObjects
	}
	query := v.r.URL.Query()
	bucket, key, rows := query.Get("bucket"), query.Get("key"), query.Get("rows")
	body := []g.Node{h.Form(
		h.Class("filters"), h.Method("get"), h.Action(link("objects")),
		field{name: "bucket", label: "Bucket", value: bucket, kind: "search", isOptional: true}.render(),
		field{name: "key", label: "Key, with * for any characters", value: key, kind: "search", isOptional: true}.render(),
		choiceField{name: "rows", label: "Rows", value: rows, options: []navigationEntry{{"", "current ones"}, {"all", "all"}}}.render(),
		button("Search"),
	)}
	if bucket != "" || key != "" {
		found, err := v.searchObjects(bucket, key, rows, query.Get("page"))
		if err != nil {
			return err
		}
		body = append(body, found)
	}
	for _, kind := range jobKinds {
		jobs, err := v.opts.Objects.ListJobs(v.ctx(), domain.JobID{Kind: kind.kind}, overviewJobs)
		if err != nil {
			return err
		}
		body = append(body, h.H2(g.Text(kind.title)), v.jobTable(kind.title, jobs), g.If(len(jobs) == overviewJobs, h.P(h.A(h.Href(link("objects", "jobs", string(kind.kind))), g.Text("All of them: "+kind.title)))))
	}
	return v.show(&view{title: "Objects", body: body})
}

// searchObjects returns a table of the rows whose bucket and key match.
func (v *visit) searchObjects(bucket, key, rows, page string) (g.Node, error) {
	params := make(url.Values)
	for name, text := range map[string]string{"bucket": bucket, "key": key} {
		if text != "" {
			params.Set(name, text)
		}
	}
	if rows == "all" {
		params.Set("currentState", "false")
	}
	filter, err := ledger.ParseFilter(params)
	if err != nil {
		return nil, err
	}
	found, err := v.opts.Objects.List(v.ctx(), ledger.Query{Filter: filter, Limit: shownObjects, Token: page})
	if err != nil {
		return nil, err
	}
	first, next := "", ""
	if page != "" {
		first = withQuery(link("objects"), "bucket", bucket, "key", key, "rows", rows)
	}
	if found.Next != "" {
		next = withQuery(link("objects"), "bucket", bucket, "key", key, "rows", rows, "page", found.Next)
	}
	return g.Group{damagedRows(&found), objectTable("No object is in this part of the list.", found.Rows), pager(first, next)}, nil
}

// damagedRows returns a notice if rows are missing on a page because they are damaged. Otherwise it
// returns nil.
func damagedRows(page *ledger.Page) g.Node {
	if len(page.Damaged) == 0 {
		return nil
	}
	return notice(bad, h.P(g.Text("Objects with rows that cannot be read: "), number(int64(len(page.Damaged))), g.Text(". A check of the store names them.")))
}

// objectTable returns a table of rows. It omits the attributes that users have set.
func objectTable(empty string, rows []ledger.Row) g.Node {
	t := tableView{
		caption: "Rows, in UTC",
		columns: []column{{title: "Key"}, {title: "Bucket"}, {title: "State"}, {title: "Event"}, {title: "Time"}, {title: "Bytes", isNumber: true}, {title: "Version"}, {title: "Storage class"}, {title: "Repeats", isNumber: true}},
		empty:   empty,
	}
	for i := range rows {
		r := &rows[i]
		size := g.Text("–")
		if r.Size != nil {
			size = number(*r.Size)
		}
		t.rows = append(t.rows, []g.Node{
			anchor(link("objects", "rows", ledger.RowID{Name: r.Name}.String()), r.Name.Key()), bdi(r.Name.Bucket()), stateOfRow(r),
			g.Text(r.Type.String()), moment(r.Time), size, bdi(r.Version.String()), bdi(r.StorageClass), number(r.Duplicates),
		})
	}
	return t.render()
}

func stateOfRow(r *ledger.Row) g.Node {
	state := badge(mild, "earlier")
	switch {
	case r.IsCurrent && r.IsAccessible():
		state = badge(good, "current")
	case r.IsCurrent:
		state = badge(warn, "current, cannot be read at once")
	}
	if r.IsDoubtful {
		return g.Group{state, g.Text(" "), badge(warn, "order in doubt")}
	}
	return state
}

// object shows the rows of an object.
func (v *visit) object() error {
	if v.opts.Objects == nil {
		return errNoObjects
	}
	id, err := ledger.ParseRowID(v.path("object"))
	if err != nil {
		return errNoPage
	}
	page := v.r.URL.Query().Get("page")
	found, err := v.opts.Objects.History(v.ctx(), id, shownObjects, page)
	if err != nil {
		return err
	}
	path, first, next := link("objects", "rows", id.String()), "", ""
	if page != "" {
		first = path
	}
	if found.Next != "" {
		next = withQuery(path, "page", found.Next)
	}
	return v.show(&view{title: "Object", about: id.Name.Key(), body: []g.Node{
		facts(fact{"Bucket", anchor(withQuery(link("objects"), "bucket", id.Name.Bucket()), id.Name.Bucket())}, fact{"Key", bdi(id.Name.Key())}),
		damagedRows(&found), objectTable("The object has no rows in this part of the list.", found.Rows), pager(first, next),
	}})
}
