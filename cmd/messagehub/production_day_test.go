package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	engine "github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/repository/content/embedded"
)

// TestADayInProduction follows the handbook from its first page to its last.
// The template of deploy/azure is deployed to the emulators. Three hubs run
// with the settings of the Helm chart, and are replaced one after another.
// Their accounts are backed up, and then all disks are lost. After the restore,
// the actors must receive every event that was accepted and not confirmed
// before the backup.
//
// MESSAGEHUB_DAY_EVENTS sets the number of events for each actor; the default
// is 20.
func TestADayInProduction(t *testing.T) {
	d := &day{T: t, folder: t.TempDir(), events: int(number(t, "MESSAGEHUB_DAY_EVENTS", 20)), confirmed: make(map[string]bool)}
	for i := range 5 {
		d.actors = append(d.actors, fmt.Sprintf("57900000%05d", i))
	}
	d.startAccounts()
	template, err := os.ReadFile("../../deploy/azure/main.json")
	require.NoError(t, err)
	d.accounts().deploy(template, nil)
	require.Empty(t, d.accounts().provision(0, "--diff"))
	d.startHubs()

	d.send()
	d.confirm(2)
	got := d.upgrade()
	require.Zero(t, got.status, got.err)
	d.replaceHubs()
	d.send()

	d.backUp()
	backedUp, confirmedBefore := slices.Clone(d.accepted), len(d.confirmed)
	require.NotZero(t, confirmedBefore)
	before := make(map[string]bool)
	for id := range d.confirmed {
		before[id] = true
	}
	d.send()
	d.confirm(3) // confirmed after the backup, so the actors will receive these events again

	d.loseDisks()
	d.restore()
	require.Empty(t, d.accounts().provision(0, "--diff"))
	d.startHubs()
	got = messagehub(t, "", "check", "--repair", "--url", d.admin(0))
	require.Zero(t, got.status, got.out+got.err)
	clear(d.confirmed)
	d.confirm(0)
	for _, id := range backedUp {
		require.True(t, before[id] || d.confirmed[id], "event %s is lost", id)
		require.False(t, before[id] && d.confirmed[id], "event %s comes again although it was confirmed before the backup", id)
	}
	d.stopHubs()
	t.Logf("%d events accepted before the backup, %d of them confirmed before it; the other %d came after the restore", len(backedUp), len(before), len(d.confirmed))
}

// A day is a deployment on the emulators, with the state of its clients.
type day struct {
	*testing.T
	folder    string // folder that contains the accounts
	events    int    // number of events that send sends to each actor
	actors    []string
	accepted  []string // ids of accepted events
	confirmed map[string]bool

	cosmos *emulatorProcess
	bus    *busProcess
	blob   *blobProcess
	hubs   []*hubProcess
}

func (d *day) startAccounts() {
	d.cosmos = startEmulator(d.T, "--data", filepath.Join(d.folder, "cosmos"))
	d.bus = startBus(d.T, "--data", filepath.Join(d.folder, "bus"))
	d.blob = startBlobs(d.T, "--data", filepath.Join(d.folder, "blob"))
}

func (d *day) stopAccounts(signal os.Signal) {
	_ = d.cosmos.stop(d.T, signal) // stop returns an error if the process was killed
	_, _ = d.bus.stop(d.T, signal)
	_ = d.blob.stop(d.T, signal)
}

func (d *day) blobEndpoint() string {
	return "http://" + d.blob.address + "/" + embedded.WellKnownAccount
}

// accounts returns the deployment's accounts, with clients of the Azure SDK.
func (d *day) accounts() *azureAccounts {
	d.Helper()
	key, err := azcosmos.NewKeyCredential(engine.WellKnownKey)
	require.NoError(d, err)
	a := &azureAccounts{T: d.T, environ: []string{
		"MESSAGEHUB_COSMOS_ENDPOINT=" + d.cosmos.url, "MESSAGEHUB_COSMOS_KEY=" + engine.WellKnownKey,
		"MESSAGEHUB_SERVICEBUS_CONNECTION=" + d.bus.connection,
		"MESSAGEHUB_BLOB_ENDPOINT=" + d.blobEndpoint(), "MESSAGEHUB_BLOB_KEY=" + embedded.WellKnownKey,
	}}
	a.cosmos, err = azcosmos.NewClientWithKey(d.cosmos.url, key, nil)
	require.NoError(d, err)
	d.Cleanup(a.cosmos.Close)
	a.bus, err = admin.NewClientFromConnectionString(d.bus.connection, &admin.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: overHTTP{}}})
	require.NoError(d, err)
	return a
}

// settings returns the configuration of one of the chart's pods.
func (d *day) settings() map[string]any {
	d.Helper()
	settings := chartSettings(d.T, func(s map[string]any) bool { return s["cosmos"] != nil && s["production"] == false })
	for section, values := range map[string][3]string{
		"cosmos": {"key-file", engine.WellKnownKey, d.cosmos.url}, "blob": {"key-file", embedded.WellKnownKey, d.blobEndpoint()},
		"servicebus": {"connection-file", d.bus.connection, ""},
	} {
		of := settings[section].(map[string]any)
		require.NoError(d, os.WriteFile(of[values[0]].(string), []byte(values[1]), 0o600))
		if values[2] != "" {
			of["endpoint"] = values[2]
		}
	}
	return settings
}

func (d *day) startHubs() {
	d.hubs = nil
	for range 3 {
		d.hubs = append(d.hubs, startChartHub(d.T, d.settings()))
	}
}

// replaceHubs replaces the hubs one after another.
func (d *day) replaceHubs() {
	for i, h := range d.hubs {
		require.NoError(d, h.stop(d.T, syscall.SIGTERM), h.stderrText())
		d.hubs[i] = startChartHub(d.T, d.settings())
	}
}

func (d *day) stopHubs() {
	for _, h := range d.hubs {
		require.NoError(d, h.stop(d.T, syscall.SIGTERM), h.stderrText())
	}
}

// admin returns the URL of a hub's operators' listener.
func (d *day) admin(hub int) string { return "http://" + adminAddress(d.T, d.hubs[hub], "http") }

// upgrade raises the level of the store. An operator does this after all nodes
// run the new version.
func (d *day) upgrade() result {
	settings := d.settings()
	delete(settings, "admin") // deleted, because the command finds the token in its environment
	text, err := yaml.Marshal(settings)
	require.NoError(d, err)
	file := filepath.Join(d.TempDir(), "hub.yaml")
	require.NoError(d, os.WriteFile(file, text, 0o600))
	return messagehub(d.T, "", "upgrade", "--config", file)
}

// send sends events for all actors, to each hub in turn.
func (d *day) send() {
	for i, actor := range d.actors {
		var lines strings.Builder
		for range d.events {
			id := uuid.NewString()
			d.accepted = append(d.accepted, id)
			fmt.Fprintf(&lines, `{"id":%q,"recipient":%q,"origin":"Charges","contentType":"c","documentType":"d","supportsBundling":true,"weight":1,"payload":{"id":%q}}`+"\n", id, actor, id)
		}
		got := messagehub(d.T, lines.String(), "send", "--url", d.hubs[i%len(d.hubs)].url(d.T), "-")
		require.Zero(d, got.status, got.err)
	}
}

var (
	dayEvent  = regexp.MustCompile(`"payload":\{"id":"([^"]+)"\}`)
	dayBundle = regexp.MustCompile(`MessageId: (\S+)`)
)

// confirm makes the first actors fetch and confirm all of their events. actors
// is the number of these actors; 0 means all.
func (d *day) confirm(actors int) {
	if actors == 0 {
		actors = len(d.actors)
	}
	for i, actor := range d.actors[:actors] {
		url := d.hubs[i%len(d.hubs)].url(d.T)
		for {
			got := messagehub(d.T, "", "peek", "--url", url, "--actor", actor)
			if got.status == exitNoData {
				break
			}
			require.Zero(d, got.status, got.err)
			for _, found := range dayEvent.FindAllStringSubmatch(got.out, -1) {
				require.False(d, d.confirmed[found[1]], "event %s comes twice", found[1])
				d.confirmed[found[1]] = true
			}
			bundle := dayBundle.FindStringSubmatch(got.err)
			require.NotNil(d, bundle, got.err)
			got = messagehub(d.T, "", "dequeue", "--url", url, "--actor", actor, bundle[1])
			require.Zero(d, got.status, got.err)
		}
	}
}

// backUp stops all processes and copies the accounts, because a backup of a
// live account can be tested only on Azure. The handbook page is backups.
func (d *day) backUp() {
	d.stopHubs()
	d.stopAccounts(syscall.SIGTERM)
	require.NoError(d, os.CopyFS(d.folder+".backup", os.DirFS(d.folder)))
	d.startAccounts()
	d.startHubs()
}

// loseDisks kills all processes, and deletes all stored data.
func (d *day) loseDisks() {
	for _, h := range d.hubs {
		h.kill()
	}
	d.stopAccounts(syscall.SIGKILL)
	require.NoError(d, os.RemoveAll(d.folder))
}

func (d *day) restore() {
	require.NoError(d, os.Rename(d.folder+".backup", d.folder))
	d.startAccounts()
}
