package objects

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// A job is a stored task that runs for a long time and concerns many objects.
type job struct {
	Kind     string `json:"jobKind"`
	UUID     string `json:"uuid"`
	Bucket   string `json:"bucket"`
	Live     bool   `json:"live"`
	Request  string `json:"request"`
	State    string `json:"state"`
	Started  string `json:"started"`
	Cursor   string `json:"cursor"`
	Seen     int64  `json:"seen"`
	Created  int64  `json:"created"`
	Deleted  int64  `json:"deleted"`
	Owner    string `json:"owner"`
	Lease    int64  `json:"lease"`
	Attempts int    `json:"attempts"`
}

// crawlKind is the kind of a crawl. A bucket has at most one running job of this kind.
const crawlKind = "crawl"

// requestOf returns the request of a job from the separate document that stores it.
func requestOf(text []byte) string {
	var d struct {
		Request string `json:"request"`
	}
	_ = json.Unmarshal(text, &d) // text is valid JSON, or nil
	return d.Request
}

// checkJob checks a change of a job, or of the document that names the running job of a bucket.
func (o *Observer) checkJob(k key, kind string, text []byte) {
	var after job
	if text != nil {
		if err := json.Unmarshal(text, &after); err != nil {
			o.addViolation("layout", k, "it cannot be read: %v", err)
			return
		}
	}
	switch {
	case kind == "running" && text == nil:
		delete(o.running, k.id)
	case kind == "running":
		o.running[k.id] = after.UUID
	case text == nil: // ended jobs expire
		for uuid, j := range o.jobs {
			if j.Kind+"."+uuid == k.id && j.Live {
				o.addViolation("L8", k, "a running job was removed")
			}
		}
	default:
		if before, existed := o.jobs[after.UUID]; existed {
			o.checkJobChange(k, &before, &after)
		} else if !after.Live || after.Lease != 0 {
			o.addViolation("L8", k, "a new job is not running, or already has a lease")
		}
		o.jobs[after.UUID] = after
	}
}

func (o *Observer) checkJobChange(k key, before, after *job) {
	if !before.Live {
		if *before != *after {
			o.addViolation("L8", k, "a job changed after its end")
		}
		return
	}
	if after.Kind != before.Kind || after.Bucket != before.Bucket || after.Request != before.Request || after.Started != before.Started || after.Live != (after.State == "running") {
		o.addViolation("L8", k, "a job was replaced by another one; it was %+v", *before)
	}
	isTaken := after.Lease == before.Lease+1 && after.Owner != before.Owner
	if !isTaken && (after.Lease != before.Lease || after.Owner != before.Owner) {
		o.addViolation("L8", k, "lease %d belonged to %q, and lease %d belongs to %q", before.Lease, before.Owner, after.Lease, after.Owner)
	}
	if isTaken && before.Lease > 0 {
		o.markReached("a job was taken over")
	}
	if after.Seen < before.Seen || after.Created < before.Created || after.Deleted < before.Deleted || isBehind(after.Cursor, before.Cursor) {
		o.addViolation("L8", k, "a job moved back; it was %+v", *before)
	}
}

// isBehind reports whether the first cursor of a crawl is at an earlier position than the second.
func isBehind(cursor, than string) bool {
	var a, b struct {
		Last []byte `json:"last"`
	}
	_ = json.Unmarshal([]byte(cursor), &a) // the cursor may be empty at the start, and cursors of other jobs have no last key
	_ = json.Unmarshal([]byte(than), &b)
	return bytes.Compare(a.Last, b.Last) < 0
}

// checkRunningJobs checks that each bucket has at most one running crawl, and a document that names it.
func (o *Observer) checkRunningJobs() {
	running := make(map[string]string) // UUIDs of running jobs, by bucket
	for _, uuid := range slices.Sorted(maps.Keys(o.jobs)) {
		j := o.jobs[uuid]
		if !j.Live || j.Kind != crawlKind {
			continue
		}
		if other := running[j.Bucket]; other != "" {
			o.addViolation("L8", key{"jobs", uuid}, "crawls %s and %s of bucket %s run concurrently", other, uuid, j.Bucket)
		}
		running[j.Bucket] = uuid
	}
	said := make(map[string]bool)
	for _, uuid := range o.running {
		said[uuid] = true
	}
	if len(said) != len(o.running) || len(said) != len(running) {
		o.addViolation("L8", key{"jobs", "running"}, "the list of running jobs has %v, but the running jobs are %v", o.running, running)
		return
	}
	for bucket, uuid := range running {
		if !said[uuid] {
			o.addViolation("L8", key{"jobs", "running"}, "crawl %s of bucket %s is running, but is not in the list of running jobs", uuid, bucket)
		}
	}
}

// checkCrawled checks that a new row of a crawl refers to a job for the bucket of the row.
func (j *objectCheck) checkCrawled(r *objectRow) {
	text, isOfCrawl := strings.CutPrefix(r.Message, "crawl/")
	if !isOfCrawl {
		return
	}
	uuid, _, _ := strings.Cut(text, "/")
	if job, has := j.jobs[uuid]; !has || job.Kind != crawlKind || job.Bucket != j.doc.Bucket {
		j.addViolation("L8", "row %+v belongs to no crawl of bucket %s", r.identityOf(), j.doc.Bucket)
	}
	j.markReached("a crawl stored a row")
}

// Running returns the number of running jobs.
func (o *Observer) Running() (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, j := range o.jobs {
		if j.Live {
			n++
		}
	}
	return n
}
