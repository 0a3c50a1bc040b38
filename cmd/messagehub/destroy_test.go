package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// destroy runs messagehub destroy with the settings of these accounts.
func (d *azureAccounts) destroy(status int) (out, errs string) {
	d.Helper()
	var o, e bytes.Buffer
	got := run(d.Context(), &process{args: []string{"messagehub", "destroy"}, environ: d.environ, in: strings.NewReader(""), out: &o, err: &e})
	require.Equal(d, status, got, "%s%s", &o, &e)
	for _, secret := range d.secrets {
		require.NotContains(d, o.String()+e.String(), secret)
	}
	return o.String(), e.String()
}

func TestDestroy_DeletesWhatProvisionHasCreated(t *testing.T) {
	d := newAccounts(t)
	d.environ = append(
		d.environ, "MESSAGEHUB_COSMOS_DATABASE=test-1", "MESSAGEHUB_BLOB_CONTAINER=test-1",
		"MESSAGEHUB_SERVICEBUS_FIFO_QUEUE=test-fifo", "MESSAGEHUB_SERVICEBUS_PLAIN_QUEUE=test-plain", "MESSAGEHUB_OBJECTS_QUEUE=test-objects",
		"MESSAGEHUB_DOMAINS="+testDomains,
	)
	created := d.provision(0)
	out, _ := d.destroy(0)
	deleted := strings.Count(created, " created\n") - 1 // one less, because the database is not deleted
	require.Equal(t, deleted, strings.Count(out, " deleted\n"), "%s%s", created, out)
	again, _ := d.destroy(0)
	require.Equal(t, deleted, strings.Count(again, " missing\n"))
	require.Regexp(t, `(?m)^cosmos +container +streams +missing$`, d.provision(1, "--check"))
}

// testDomains is a value of the setting domains in which all queue names begin
// with test-.
const testDomains = `[{name: Charges, queue: test-a, reply-queue: test-b, dequeue-queue: test-c},` +
	`{name: MeteringPoints, queue: test-d, reply-queue: test-e, dequeue-queue: test-f},` +
	`{name: MarketRoles, queue: test-g, reply-queue: test-h, dequeue-queue: test-i},` +
	`{name: TimeSeries, queue: test-j, reply-queue: test-k, dequeue-queue: test-l},` +
	`{name: Aggregations, queue: test-m, reply-queue: test-n, dequeue-queue: test-o}]`

func TestDestroy_RefusesResourcesWithoutTheTestPrefix(t *testing.T) {
	d := newAccounts(t)
	d.environ = append(d.environ, "MESSAGEHUB_BLOB_CONTAINER=test-1")
	d.provision(0)
	_, errs := d.destroy(1)
	require.Contains(t, errs, `cosmos.database = "messagehub": nothing was deleted; destroy deletes only what is named test-…`)
	require.Contains(t, errs, `queue of Service Bus = "dataavailable": nothing was deleted`)
	require.NotContains(t, errs, "blob.container")
	d.provision(0, "--check")
}

func TestDestroy_HasNothingToDoForEmbeddedStores(t *testing.T) {
	got := messagehub(t, "", "destroy")
	require.Equal(t, 0, got.status, got.err)
	require.Contains(t, got.out, "Nothing to delete")
}
