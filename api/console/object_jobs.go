package console

import (
	"context"
	"net/http"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/domain/journal"
)

// A jobTitle is the heading for the jobs of one kind.
type jobTitle struct {
	kind  domain.JobKind
	title string
}

// jobKinds are the kinds of jobs on objects.
var jobKinds = []jobTitle{{domain.CrawlJob, "Crawls"}, {domain.InventoryJob, "Inventories"}, {domain.PatchJob, "Patches"}}

// jobStates maps the state of a job to the style of its badge.
var jobStates = map[domain.JobState]badgeKind{
	domain.JobRunning: good, domain.JobCompleted: mild, domain.JobFailed: bad, domain.JobStopped: warn,
}

// jobTable returns a table of jobs.
func (v *visit) jobTable(title string, jobs []domain.Job) g.Node {
	t := tableView{
		caption: title + ", the newest first, in UTC",
		columns: []column{{title: "Job"}, {title: "State"}, {title: "Bucket"}, {title: "Started"}, {title: "Ended"}, {title: "Seen", isNumber: true}, {title: "Refused", isNumber: true}},
		empty:   "There are no jobs.",
	}
	for i := range jobs {
		j := &jobs[i]
		t.rows = append(t.rows, []g.Node{
			anchor(jobPath(j.ID), j.ID.UUID()), v.stateOfJob(j), bdi(j.Bucket), moment(j.Started), moment(j.Ended), number(j.Counts.Seen), number(j.Counts.Refused),
		})
	}
	return t.render()
}

func jobPath(id domain.JobID) string { return link("objects", "jobs", string(id.Kind), id.UUID()) }

// stateOfJob returns the state of a job. For a running job without progress, it adds the reason.
func (v *visit) stateOfJob(j *domain.Job) g.Node {
	now := v.opts.Clock()
	switch {
	case j.State == domain.JobRunning && j.Attempts > 0:
		return g.Group{badge(warn, "a step failed and is repeated"), g.Text(" "), bdi(j.Report)}
	case j.State == domain.JobRunning && j.Lease.Owner == "":
		return badge(mild, "waits for a node")
	case j.State == domain.JobRunning && now.After(j.Lease.Until):
		return g.Group{badge(warn, "no node works on it"), g.Text(" for " + age(j.Lease.Until, now) + "; another node takes it over")}
	case j.State == domain.JobFailed:
		return g.Group{badge(bad, "failed"), g.Text(" "), bdi(j.Report)}
	}
	return badge(jobStates[j.State], string(j.State))
}

// jobKind returns the kind of job whose name is in the path.
func (v *visit) jobKind() (jobTitle, error) {
	if v.opts.Objects == nil {
		return jobTitle{}, errNoObjects
	}
	for _, k := range jobKinds {
		if string(k.kind) == v.path("kind") {
			return k, nil
		}
	}
	return jobTitle{}, errNoPage
}

// jobs lists the jobs of one kind.
func (v *visit) jobs() error {
	kind, err := v.jobKind()
	if err != nil {
		return err
	}
	before := domain.JobID{Kind: kind.kind}
	text := v.r.URL.Query().Get("before")
	if text != "" {
		if before, err = domain.ParseJobID(kind.kind, text); err != nil {
			return err
		}
	}
	found, err := v.opts.Objects.ListJobs(v.ctx(), before, shownJobs)
	if err != nil {
		return err
	}
	path, first, next := link("objects", "jobs", string(kind.kind)), "", ""
	if text != "" {
		first = path
	}
	if len(found) == shownJobs {
		next = withQuery(path, "before", found[shownJobs-1].ID.UUID())
	}
	return v.show(&view{title: kind.title, body: []g.Node{v.jobTable(kind.title, found), pager(first, next)}})
}

// findJob returns the job whose id is in the path.
func (v *visit) findJob() (domain.Job, error) {
	kind, err := v.jobKind()
	if err != nil {
		return domain.Job{}, err
	}
	id, err := domain.ParseJobID(kind.kind, v.path("job"))
	if err != nil {
		return domain.Job{}, errNoPage
	}
	return v.opts.Objects.Job(v.ctx(), id)
}

// job shows the progress of a job, and the objects that it could not change.
func (v *visit) job() error {
	j, err := v.findJob()
	if err != nil {
		return err
	}
	end := g.Text("–")
	if !j.Ended.IsZero() {
		end = g.Text(duration(j.Ended.Sub(j.Started)))
	} else if j.State == domain.JobRunning {
		end = g.Text(age(j.Started, v.opts.Clock()) + " so far")
	}
	t := tableView{caption: "Objects that were left as they are", columns: []column{{title: "Object"}, {title: "Reason"}}, empty: "The job has refused no object."}
	for _, f := range j.Failures {
		t.rows = append(t.rows, []g.Node{bdi(f.Object), bdi(f.Reason)})
	}
	c := &j.Counts
	var stop g.Node
	if j.State == domain.JobRunning {
		stop = v.orderLink(jobPath(j.ID)+"/stop", "Stop the job")
	}
	return v.show(&view{title: "Job", about: string(j.ID.Kind) + " " + j.ID.UUID(), body: []g.Node{
		facts(
			fact{"State", v.stateOfJob(&j)}, fact{"Bucket", bdi(j.Bucket)}, fact{"Started", moment(j.Started)}, fact{"Ended", moment(j.Ended)}, fact{"Time", end},
			fact{"Seen", number(c.Seen)}, fact{"Created", number(c.Created)}, fact{"Deleted", number(c.Deleted)}, fact{"Changed", number(c.Changed)},
			fact{"Unchanged", number(c.Unchanged)}, fact{"Refused", number(c.Refused)}, fact{"Failed attempts of the step", number(int64(j.Attempts))},
		),
		actionLinks(stop, h.A(h.Href(jobPath(j.ID)+"/records"), g.Text("Records of operators"))),
		t.render(),
		g.If(c.Refused > int64(len(j.Failures)), h.P(g.Text("The job has refused more objects than it keeps."))),
	}})
}

// jobSubject returns the subject of the records of a job.
func jobSubject(id domain.JobID) journal.Subject {
	return journal.SubjectOf("job", string(id.Kind), id.UUID())
}

// stopJob shows the form that stops a job. If the form was submitted, it stops the job.
func (v *visit) stopJob() error {
	j, err := v.findJob()
	if err != nil {
		return err
	}
	if j.State != domain.JobRunning {
		return &pageError{http.StatusConflict, "The job has ended", "Nothing was done. The job is " + string(j.State) + ", and only one that runs can be stopped."}
	}
	typed, label := j.Bucket, "Bucket"
	if typed == "" {
		typed, label = string(j.ID.Kind), "Kind of job"
	}
	return v.confirm(&confirmation{
		title: "Stop job", about: string(j.ID.Kind) + " " + j.ID.UUID(), button: "Stop the job", isDanger: true,
		effect: "The job ends and cannot be continued; a new job begins from the start. What it has stored remains.",
		typed:  typed, typedLabel: label,
		state: []fact{textFact("Kind", string(j.ID.Kind)), textFact("Job", j.ID.UUID()), textFact("Bucket", j.Bucket), textFact("State", string(j.State))},
		carryOut: func(by hub.AdminAction) error {
			return v.opts.Journal.CarryOut(v.ctx(), jobSubject(j.ID), "stop", "", by, func(ctx context.Context) error {
				_, err := v.opts.Objects.StopJob(ctx, j.ID)
				return err
			})
		},
		after: withQuery(jobPath(j.ID)+"/records", "done", "1"),
	})
}

// jobRecords shows the records of orders that concern a job.
func (v *visit) jobRecords() error {
	j, err := v.findJob()
	if err != nil {
		return err
	}
	return v.showRecords("Records of job", j.ID.UUID(), jobSubject(j.ID), jobPath(j.ID))
}
