package node

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/messagehub/messagehub/cmd/node/deployment"
	"github.com/messagehub/messagehub/cmd/node/doctor"
	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/level"
	rights "github.com/messagehub/messagehub/cosmos/probe"
	"github.com/messagehub/messagehub/domain"
)

// resourceFindings returns a finding for each fault that Provision found in a
// resource.
func resourceFindings(r *Resource) (found []doctor.Finding) {
	const remedy = "run messagehub provision; where its credential may not do this, messagehub provision --check prints the commands"
	what := r.Kind + " " + r.Name
	switch r.State {
	case client.StateMissing:
		return singleFinding(doctor.Fail(r.Name, what+" does not exist", remedy))
	case client.StateUnknown:
		for _, left := range r.Left {
			text, does := splitRemedy(left)
			found = append(found, doctor.Fail(r.Name, text, does))
		}
		return found
	case client.StateUnfit:
		for _, left := range r.Left {
			found = append(found, doctor.Fail(r.Name, left, "create it again, with what it holds moved before; messagehub provision --check prints the commands"))
		}
		return found
	case client.StateWrong:
		for _, left := range r.Left {
			found = append(found, doctor.Fail(r.Name, strings.TrimSuffix(left, "; correct it with messagehub provision"), remedy))
		}
		return found
	default:
	}
	for _, note := range r.Notes {
		found = append(found, doctor.Warn(r.Name, what+": "+note, remedy))
	}
	return found
}

// comparisonFindings returns the findings about all resources of one kind that
// Provision compared.
func comparisonFindings(all []Resource, kind string) []doctor.Finding {
	var found []doctor.Finding
	n := 0
	for i := range all {
		found = append(found, resourceFindings(&all[i])...)
		if all[i].Kind == kind {
			n++
		}
	}
	return passedUnless(found, "%d %ss are as the hub needs them", n, kind)
}

// checkCosmosContainers compares the Cosmos account's containers with those
// that the hub needs.
func (d *diagnosis) checkCosmosContainers(ctx context.Context) []doctor.Finding {
	all, err := provisionCosmos(ctx, d.cfg, ProvisionOptions{CheckOnly: true}, d.opts)
	if err != nil {
		return singleFinding(doctor.Fail("", err.Error(), "check cosmos.endpoint and the account"))
	}
	return comparisonFindings(all, "container")
}

// connectCosmos connects to the Cosmos account. The caller must close the
// database.
func (d *diagnosis) connectCosmos() (*client.Database, error) {
	connection, err := accountConnection(d.cfg, d.opts)
	if err != nil {
		return nil, err
	}
	return client.Connect(connection)
}

// checkCosmosRights tests each right of the hub's role, with a test document in
// one container. One is enough, because checkCosmosContainers reads all
// containers, so the role covers the whole account.
func (d *diagnosis) checkCosmosRights(ctx context.Context) []doctor.Finding {
	db, err := d.connectCosmos()
	if err != nil {
		return singleFinding(doctor.Fail("", err.Error(), "check cosmos.endpoint and cosmos.key"))
	}
	defer db.Close()
	probe, err := rights.New(db, rights.Options{Clock: d.clock, Random: d.opts.Random})
	if err != nil {
		return singleFinding(doctor.Fail("", err.Error(), "check cosmos.database"))
	}
	role := deployment.NewTable(d.cfg).DataRole
	result := probe.Run(ctx, testedRights(role)...)
	found, granted := d.rightsFindings(role.Name, &result)
	if result.Left {
		found = append(found, doctor.Warn("", "the document by which rights are tested could not be deleted", "run messagehub doctor --online again once the right items/delete is granted; it removes the document"))
	}
	text := strings.Join(granted, ", ")
	if result.Removed > 0 {
		text += fmt.Sprintf("; removed %d documents that earlier runs had left", result.Removed)
	}
	return passedUnless(found, "%s", text)
}

// testedRights returns the rights of a role that package probe tests. It omits
// the right to read metadata, which checkCosmosContainers tests.
func testedRights(role deployment.DataRole) (names []string) {
	for _, name := range [...]string{rights.Query, rights.Create, rights.Read, rights.Replace, rights.Upsert, rights.ChangeFeed, rights.Delete} {
		if slices.ContainsFunc(role.Actions, func(a string) bool { return strings.HasSuffix(a, "/"+name) }) {
			names = append(names, name)
		}
	}
	return names
}

// rightsFindings returns the findings about tested rights, and the names of the
// granted rights.
func (d *diagnosis) rightsFindings(role string, result *rights.Result) (found []doctor.Finding, granted []string) {
	var denied []string
	var refusal error
	for _, r := range result.Rights {
		switch {
		case r.Err == nil:
			granted = append(granted, r.Name)
		case rights.IsDenied(r.Err):
			denied, refusal = append(denied, r.Name), r.Err
		case client.IsContainerMissing(r.Err):
			return singleFinding(doctor.Skip("", "the container in which rights are tested does not exist")), nil
		default:
			found = append(found, doctor.Fail(r.Name, "the right "+r.Name+" could not be tested: "+r.Err.Error(), "run messagehub doctor --online again; see what the account reports about itself in the Azure portal"))
		}
	}
	if len(denied) > 0 && len(denied) == len(result.Rights) {
		return append(found, doctor.Fail("", "the account grants no right: "+client.FailureOf(refusal).Error(), d.denialRemedy(role, refusal))), nil
	}
	for _, name := range denied {
		found = append(found, doctor.Fail(name, "the credential does not have the right "+name, d.denialRemedy(role, refusal)))
	}
	return found, granted
}

// denialRemedy returns what to do if the account refuses the credential.
func (d *diagnosis) denialRemedy(role string, refusal error) string {
	switch {
	case strings.Contains(strings.ToLower(refusal.Error()), "firewall"):
		return "allow the addresses of this machine in the firewall of the account, or reach it by a private endpoint"
	case d.cfg.Cosmos.Key != "":
		return "check cosmos.key: it must be a key of this account, and not one for reading alone"
	}
	return fmt.Sprintf("give the identity the role %s for the database %s; messagehub provision --format az prints the commands", role, d.cfg.Cosmos.Database)
}

// checkNodes reports which other nodes use the account.
func (d *diagnosis) checkNodes(ctx context.Context) []doctor.Finding {
	db, err := d.connectCosmos()
	if err != nil {
		return singleFinding(doctor.Fail("", err.Error(), "check cosmos.endpoint and cosmos.key"))
	}
	defer db.Close()
	status, isThere, err := level.ReadStatus(ctx, db, level.Options{Table: d.opts.levelTable(), Version: d.opts.Version, Retries: 3, Clock: d.clock, Random: d.opts.Random})
	switch {
	case domain.KindOf(err) == domain.NewerFormat:
		return singleFinding(doctor.Fail("", err.Error(), "use that version on this machine, too; see the page about upgrading"))
	case rights.IsDenied(err), client.IsContainerMissing(err):
		return singleFinding(doctor.Skip("", "the level of the store cannot be read"))
	case err != nil:
		return singleFinding(doctor.Fail("", err.Error(), "run messagehub doctor --online again"))
	case !isThere:
		return singleFinding(doctor.Passed("", "no node has worked on this database yet"))
	}
	versions := make(map[string]int)
	for _, n := range status.Nodes {
		versions[n.Version]++
	}
	var parts []string
	for _, version := range slices.Sorted(maps.Keys(versions)) {
		parts = append(parts, fmt.Sprintf("%d of version %s", versions[version], version))
	}
	text := fmt.Sprintf("level %d, no node", status.Level)
	if len(parts) > 0 {
		text = fmt.Sprintf("level %d, nodes: %s; one that has died counts for up to 10 minutes", status.Level, strings.Join(parts, ", "))
	}
	switch {
	case len(versions) > 1:
		return singleFinding(doctor.Warn("", text, "complete the upgrade: replace the nodes of the older version; messagehub upgrade --check names the nodes"))
	case len(versions) == 1 && d.opts.Version != "" && versions[d.opts.Version] == 0:
		return singleFinding(doctor.Warn("", text+"; this program is of version "+d.opts.Version, "run messagehub doctor of the version that the nodes have, or upgrade them"))
	case status.Announced > 0:
		return singleFinding(doctor.Warn("", fmt.Sprintf("%s; an upgrade to level %d has begun", text, status.Announced), "complete it with messagehub upgrade, or take it back with messagehub upgrade --back"))
	}
	return singleFinding(doctor.Passed("", "%s", text))
}
