package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// ProvisionOptions limit the changes of Provision. The zero value creates missing resources and changes
// no existing one.
type ProvisionOptions struct {
	CheckOnly   bool // compare only; create and change nothing
	Repair      bool // correct the index paths and the TTL of existing containers
	NarrowIndex bool // with Repair: remove index paths that no query of the hub needs
	Throughput  bool // create containers with the suggested throughput, unless the account is serverless
}

// A Provisioned reports what Provision found and did for one resource.
type Provisioned struct {
	Kind    string         // kind of the resource: database or container
	Name    string         // name of the resource
	Spec    *ContainerSpec // specification of a container; nil for a database
	State   ProvisionState // state of the resource after Provision
	Changes []string       // changes to a resource that existed
	Notes   []string       // mismatches that make requests more expensive, but break nothing
	Left    []error        // corrections that the operator must make by hand or with another credential
}

// A ProvisionState is the state of a resource.
type ProvisionState string

// The states of a resource.
const (
	StateOK      ProvisionState = "ok"
	StateCreated ProvisionState = "created"
	StateUpdated ProvisionState = "updated"
	StateDeleted ProvisionState = "deleted"
	StateMissing ProvisionState = "missing"
	StateWrong   ProvisionState = "wrong"     // the resource can be corrected in place
	StateUnfit   ProvisionState = "unfit"     // the resource must be created again
	StateUnknown ProvisionState = "not known" // the credential may not read the resource
	StateExtra   ProvisionState = "extra"     // the hub does not need the resource
)

// Provision creates the missing database and containers, and corrects the index paths and the TTL of
// existing containers. It needs an account key, or a credential with the rights to create and replace
// containers. The hub itself only reads and writes documents.
func (db *Database) Provision(ctx context.Context, containers []ContainerSpec) error {
	all, err := New(db, Options{Containers: containers}).Provision(ctx, ProvisionOptions{Repair: true})
	if err != nil {
		return err
	}
	return Unfinished(all)
}

// Unfinished returns all remaining corrections as one error. It returns nil if no correction remains.
func Unfinished(all []Provisioned) error {
	var left []error
	for i := range all {
		left = append(left, all[i].Left...)
	}
	return errors.Join(left...)
}

// Provision creates and corrects the resources as opts permits, and returns the state of each: the
// database, then the containers. It never changes a partition key. It fails if the account cannot be
// reached.
func (c *Client) Provision(ctx context.Context, opts ProvisionOptions) ([]Provisioned, error) {
	specs := c.opts.Containers
	all := []Provisioned{{Kind: "database", Name: c.db.name, State: StateOK}}
	states := make([]*containerState, len(specs))
	call := c.Begin("provision")
	call.retries = min(provisionRetries, c.opts.Retries)
	for i := range specs {
		p := Provisioned{Kind: "container", Name: specs[i].Name, Spec: &specs[i], State: StateOK}
		if all[0].State == StateUnknown { // the account refuses the credential
			p.State = StateUnknown
			all = append(all, p)
			continue
		}
		state, err := call.readContainer(ctx, p.Name)
		switch {
		case errors.Is(err, errContainerMissing):
			p.State = StateMissing
		case isDenied(err):
			p.State, all[0].State, p.Left = StateUnknown, StateUnknown, []error{err}
		case err != nil:
			return nil, err
		}
		states[i], all = state, append(all, p)
	}
	if slices.ContainsFunc(all, func(p Provisioned) bool { return p.State == StateMissing }) {
		c.provisionDatabase(ctx, opts, &all[0])
	}
	for i := range specs {
		switch p := &all[i+1]; {
		case p.State == StateMissing:
			c.createContainer(ctx, opts, p, all[0].State)
		case states[i] != nil:
			c.repairContainer(ctx, opts, p, states[i], call)
		}
	}
	return all, nil
}

// provisionRetries is the budget of Provision for reads. It is small, so that Provision reports an
// unreachable account quickly.
const provisionRetries = 3

// isDenied reports whether the account has refused the credential.
func isDenied(err error) bool {
	status := StatusOf(err)
	return status == http.StatusUnauthorized || status == http.StatusForbidden
}

// explainDenied adds the required credential to the text of an error.
func explainDenied(what string, err error) error {
	err = Classify(what, err)
	if isDenied(err) {
		return fmt.Errorf("%w; Cosmos lets no data role create or change databases and containers: use the account key (cosmos.key), or the Azure CLI with a role such as DocumentDB Account Contributor", err)
	}
	return err
}

func (c *Client) provisionDatabase(ctx context.Context, opts ProvisionOptions, p *Provisioned) {
	d, err := c.db.account.NewDatabase(c.db.name)
	if err == nil {
		_, err = d.Read(ctx, nil)
	}
	switch {
	case err == nil:
		return
	case StatusOf(err) != http.StatusNotFound:
		p.State, p.Left = StateUnknown, []error{explainDenied("read database "+p.Name, err)}
		return
	case opts.CheckOnly:
		p.State, p.Left = StateMissing, []error{fmt.Errorf("database %s does not exist", p.Name)}
		return
	}
	p.State = StateCreated
	if _, err = c.db.account.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: c.db.name}, nil); err != nil && StatusOf(err) != http.StatusConflict {
		p.State, p.Left = StateMissing, []error{explainDenied("create database "+p.Name, err)}
	}
}

func (c *Client) createContainer(ctx context.Context, opts ProvisionOptions, p *Provisioned, database ProvisionState) {
	if opts.CheckOnly || database == StateMissing || database == StateUnknown {
		p.Left = []error{fmt.Errorf("container %s does not exist", p.Name)}
		return
	}
	d, err := c.db.account.NewDatabase(c.db.name)
	if err != nil {
		p.Left = []error{err}
		return
	}
	options := &azcosmos.CreateContainerOptions{}
	if opts.Throughput {
		autoscale := azcosmos.NewAutoscaleThroughputProperties(p.Spec.Throughput)
		options.ThroughputProperties = &autoscale
	}
	_, err = d.CreateContainer(ctx, p.Spec.Properties(), options)
	if opts.Throughput && StatusOf(err) == http.StatusBadRequest && strings.Contains(strings.ToLower(err.Error()), "serverless") {
		_, err = d.CreateContainer(ctx, p.Spec.Properties(), nil)
	}
	switch {
	case err == nil:
		p.State = StateCreated
	case StatusOf(err) == http.StatusConflict: // another process has just created the resource
		p.State = StateOK
	default:
		p.Left = []error{explainDenied("create container "+p.Name, err)}
	}
}

// repairContainer compares a container with what the hub needs and makes the corrections that opts and
// the account permit. If another process changes the container at the same time, it compares again.
func (c *Client) repairContainer(ctx context.Context, opts ProvisionOptions, p *Provisioned, s *containerState, call *Call) {
	for range maxRepairs {
		p.State = StateOK
		mismatches := p.Spec.compare(s)
		wanted := judgeMismatches(mismatches, &opts, p)
		if !wanted || !opts.Repair || opts.CheckOnly || p.State == StateUnfit {
			p.report(mismatches)
			return
		}
		changes, err := c.replaceProperties(ctx, p.Spec, s, opts.NarrowIndex)
		if err == nil {
			p.State, p.Changes = StateUpdated, changes
			return
		}
		if StatusOf(err) == http.StatusPreconditionFailed {
			if now, readErr := call.readContainer(ctx, p.Name); readErr == nil {
				s = now
				continue
			}
		}
		p.Left = append(p.Left, explainDenied("change container "+p.Name, err))
		p.report(mismatches)
		return
	}
	p.State = StateWrong
	p.Left = append(p.Left, fmt.Errorf("container %s: other processes change it at the same time; run messagehub provision again", p.Name))
}

// maxRepairs is the limit for the comparisons of a container that other processes change concurrently.
const maxRepairs = 5

// judgeMismatches sets the state of p, and reports whether p needs a change in place.
func judgeMismatches(mismatches []*ContainerError, opts *ProvisionOptions, p *Provisioned) (wanted bool) {
	for _, m := range mismatches {
		switch {
		case !m.Warning && !m.Repairable:
			p.State = StateUnfit
		case !m.Warning && p.State == StateOK:
			p.State = StateWrong
		}
		wanted = wanted || m.Repairable && (!m.isWiderIndex || opts.NarrowIndex)
	}
	return wanted
}

// report adds mismatches to Left or, if they break nothing, to Notes.
func (p *Provisioned) report(mismatches []*ContainerError) {
	for _, m := range mismatches {
		switch {
		case m.Warning:
			p.Notes = append(p.Notes, m.Text)
		case m.Repairable:
			p.Left = append(p.Left, fmt.Errorf("container %s: %s", m.Container, m.Text))
		default:
			p.Left = append(p.Left, m)
		}
	}
}

// replaceProperties corrects index paths and TTL. It retains all other properties, including properties
// that azcosmos does not know.
func (c *Client) replaceProperties(ctx context.Context, spec *ContainerSpec, s *containerState, narrow bool) ([]string, error) {
	body, changes, err := spec.correct(s, narrow)
	if err != nil {
		return nil, err
	}
	container, err := c.db.Container(spec.Name)
	if err != nil {
		return nil, err
	}
	ctx = context.WithValue(ctx, rawPropertiesKey{}, rawProperties{body: body, etag: s.ETag})
	_, err = container.Replace(ctx, spec.Properties(), nil)
	return changes, err
}

// correct returns the properties of s with the index paths and the TTL that the hub needs, and a list
// of the changes.
func (c *ContainerSpec) correct(s *containerState, narrow bool) (body []byte, changes []string, err error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(s.raw, &all); err != nil {
		return nil, nil, err
	}
	if ttl := s.DefaultTTL; ttl != nil && *ttl != -1 || ttl == nil && c.Expires {
		before := "none"
		if ttl != nil {
			before = fmt.Sprint(*ttl)
		}
		changes = append(changes, fmt.Sprintf("default TTL %s, was %s", c.DefaultTTL(), before))
		delete(all, "defaultTtl")
		if c.Expires {
			all["defaultTtl"] = json.RawMessage("-1")
		}
	}
	index, indexChanges, err := c.correctIndex(all["indexingPolicy"], &s.Indexing, narrow)
	if err != nil {
		return nil, nil, err
	}
	if len(indexChanges) > 0 {
		all["indexingPolicy"] = index
	}
	body, err = json.Marshal(all)
	return body, append(changes, indexChanges...), err
}

// A policyPath is an included or excluded path of an indexing policy, with unknown members.
type policyPath map[string]json.RawMessage

func (p policyPath) path() string {
	var path string
	_ = json.Unmarshal(p["path"], &path) // a path that is not a string counts as empty
	return unquotePath(path)
}

func newPolicyPath(path string) policyPath {
	text, err := json.Marshal(path)
	if err != nil {
		panic(err) // a string always marshals
	}
	return policyPath{"path": text}
}

func (c *ContainerSpec) correctIndex(raw json.RawMessage, now *indexingPolicy, narrow bool) (json.RawMessage, []string, error) {
	policy := make(map[string]json.RawMessage)
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &policy); err != nil {
			return nil, nil, err
		}
	}
	var lists struct {
		Included []policyPath `json:"includedPaths"`
		Excluded []policyPath `json:"excludedPaths"`
	}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &lists); err != nil {
			return nil, nil, err
		}
	}
	var changes []string
	if !now.isConsistent() {
		changes = append(changes, "indexing mode consistent, was "+now.describeMode())
		policy["indexingMode"], policy["automatic"] = json.RawMessage(`"consistent"`), json.RawMessage("true")
		if strings.EqualFold(now.Mode, "none") {
			*now = indexingPolicy{Excluded: []indexPath{{allPaths}}}
			lists.Included, lists.Excluded = nil, []policyPath{newPolicyPath(allPaths)}
		}
	}
	need := c.IndexPaths()
	for _, path := range need {
		if !now.isIndexed(path) {
			changes = append(changes, "index on "+path)
		}
	}
	if wider := now.extraPaths(need); narrow && len(wider) > 0 {
		changes = append(changes, "no index on "+strings.Join(wider, ", "))
		lists.Included = slices.DeleteFunc(lists.Included, func(p policyPath) bool { return slices.Contains(wider, p.path()) })
		lists.Excluded = slices.DeleteFunc(lists.Excluded, func(p policyPath) bool { return p.path() == allPaths })
		lists.Excluded = append(lists.Excluded, newPolicyPath(allPaths))
	}
	for _, path := range need {
		names := func(p policyPath) bool { return p.path() == path }
		lists.Excluded = slices.DeleteFunc(lists.Excluded, names)
		covers := func(p policyPath) bool { return names(p) || p.path() == allPaths }
		if !slices.ContainsFunc(lists.Included, covers) || slices.Contains(changes, "index on "+path) && !slices.ContainsFunc(lists.Included, names) {
			lists.Included = append(lists.Included, newPolicyPath(path))
		}
	}
	isAll := func(p policyPath) bool { return p.path() == allPaths }
	if !slices.ContainsFunc(lists.Included, isAll) && !slices.ContainsFunc(lists.Excluded, isAll) {
		lists.Excluded = append(lists.Excluded, newPolicyPath(allPaths))
	}
	var err error
	if policy["includedPaths"], err = json.Marshal(lists.Included); err != nil {
		return nil, nil, err
	}
	if policy["excludedPaths"], err = json.Marshal(lists.Excluded); err != nil {
		return nil, nil, err
	}
	text, err := json.Marshal(policy)
	return text, changes, err
}

// rawProperties is the body of a request that replaces the properties of a container.
// azcosmos.ContainerProperties would drop unknown members, and azcosmos has no option to replace a
// container on condition of its etag.
type rawProperties struct {
	body []byte
	etag string
}

type rawPropertiesKey struct{}

// rawPropertiesPolicy replaces the body of a PUT request by the rawProperties in its context.
type rawPropertiesPolicy struct{}

func (rawPropertiesPolicy) Do(req *policy.Request) (*http.Response, error) {
	raw, ok := req.Raw().Context().Value(rawPropertiesKey{}).(rawProperties)
	if ok && req.Raw().Method == http.MethodPut {
		if err := req.SetBody(streaming.NopCloser(bytes.NewReader(raw.body)), "application/json"); err != nil {
			return nil, err
		}
		req.Raw().Header.Set("If-Match", raw.etag)
	}
	return req.Next()
}
