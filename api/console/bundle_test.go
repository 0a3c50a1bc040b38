package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/console"
	"github.com/messagehub/messagehub/domain"
)

const bundlePath = "/console/mailboxes/" + actor + "/bundles/" + sampleBundle

// dequeue dequeues a bundle of actor.
func (b *browser) dequeue(id string) {
	b.t.Helper()
	bundle, err := domain.ParseBundleID(id)
	require.NoError(b.t, err)
	_, err = b.hub.Dequeue(b.t.Context(), parseActor(b.t, actor), bundle)
	require.NoError(b.t, err)
}

func TestBundle_ShowsItsEventsInOrderWithoutPayloads(t *testing.T) {
	b := openSignedIn(t)
	b.save(actor, "TimeSeries", 3)
	b.peekAs(actor, sampleBundle)
	a := b.get(bundlePath).wants(http.StatusOK)
	text := a.text()
	require.Contains(t, text, "Bundle "+sampleBundle+" State open Actor "+actor+" Group timeseries Origin TimeSeries Content type measured-data Document types NotifyValidatedMeasureData Events 3 Weight in KB 3 Numbers 1 to 3")
	require.Regexp(t, `Saved [0-9a-f-]{36} 1 NotifyValidatedMeasureData 1 may be 11 .* 2 Notify.* 3 Notify`, text)
	require.NotContains(t, text, "kwh")
	require.Contains(t, text, "Look at its body")
	require.Contains(t, text, "Release the bundle Skip the bundle")

	b.dequeue(sampleBundle)
	text = b.get(bundlePath).wants(http.StatusOK).text()
	require.Contains(t, text, "State dequeued")
	require.Contains(t, text, "Closed")
	require.NotContains(t, text, "Skip the bundle")
}

func TestBundle_OfManyEventsIsShownInParts(t *testing.T) {
	b := openSignedIn(t)
	b.save(actor, "TimeSeries", 450)
	b.peekAs(actor, sampleBundle)
	a := b.get(bundlePath).wants(http.StatusOK)
	require.Contains(t, a.text(), "Events 1 to 200 of 450.")
	require.Less(t, len(a.body), 200<<10)
	require.Contains(t, a.body, `href="`+bundlePath+`?from=200"`)
	a = b.get(bundlePath + "?from=400").wants(http.StatusOK)
	require.Contains(t, a.text(), "Events 401 to 450 of 450.")
	require.NotContains(t, a.text(), "Next part")
	require.Contains(t, b.get(bundlePath+"?from=900").wants(http.StatusOK).text(), "no events in this part")
	last := b.get(bundlePath + "?from=9223372036854775807").wants(http.StatusOK)
	require.NotContains(t, last.text(), "Next part")
	b.get(bundlePath + "?from=x").wants(http.StatusBadRequest)
	b.get(bundlePath + "?from=-1").wants(http.StatusBadRequest)
}

func TestBundle_ThatDoesNotExistIsNotFound(t *testing.T) {
	b := openSignedIn(t)
	b.get(bundlePath).wants(http.StatusNotFound)
	b.get(bundlePath + "/look").wants(http.StatusNotFound)
	require.Contains(t, b.get("/console/mailboxes/"+actor+"/bundles/x").wants(http.StatusBadRequest).text(), "The bundle id is not valid")
}

func TestBundle_ShowsItsBodyAfterTheViewIsRecorded(t *testing.T) {
	b := openSignedIn(t)
	b.save(actor, "TimeSeries", 2)
	b.peekAs(actor, sampleBundle)
	form := b.get(bundlePath + "/look").wants(http.StatusOK).form(bundlePath + "/look")
	require.False(t, form.Has("typed"))
	a := b.post(bundlePath+"/look", form).wants(http.StatusUnprocessableEntity) // the submitted form contains no reason
	require.NotContains(t, a.text(), "kwh")
	form.Set("why", "its actor asks")
	a = b.post(bundlePath+"/look", form).wants(http.StatusOK)
	require.Contains(t, a.text(), `"kwh": 1.5`)
	require.Contains(t, a.text(), "Your access to this bundle is recorded.")
	records := b.get("/console/mailboxes/" + actor + "/records")
	require.Contains(t, records.text(), "look admin.token (Kim) its actor asks bundle "+sampleBundle+" of timeseries 2")
	require.Contains(t, records.body, `href="`+bundlePath+`"`)
	require.Contains(t, b.get("/console/mailboxes/"+actor).body, `href="`+bundlePath+`"`)
}

func TestBundle_BodyIsNotShownToAReader(t *testing.T) {
	b := openWithIssuer(t, "operator.read")
	b.get(b.begin("/console/")).wants(http.StatusOK)
	b.save(actor, "TimeSeries", 1)
	b.peekAs(actor, sampleBundle)
	require.NotContains(t, b.get(bundlePath).wants(http.StatusOK).text(), "Look at its body")
	require.NotContains(t, b.get(bundlePath+"/look").wants(http.StatusForbidden).text(), "kwh")
	records, err := b.options.Operator.Records(t.Context(), parseActor(t, actor), 1)
	require.NoError(t, err)
	require.Empty(t, records)
}

func TestBody_IsLimitedOnAPage(t *testing.T) {
	for name, body := range map[string]string{
		"quotes":              strings.Repeat(`"`, 1<<20),
		"numbers":             "[" + strings.Repeat("1,", 50<<10) + "1]",
		"lines":               "[" + strings.Repeat("\n\"<\",", 10<<10) + "1]",
		"bytes":               strings.Repeat("\xff", 1<<20),
		"a character cut off": strings.Repeat("å", 60<<10),
	} {
		shown := console.ShownBody([]byte(body))
		require.Less(t, len(shown), 210<<10, name)
		require.NotContains(t, shown, "\ufffd", name)
	}
	require.Contains(t, console.ShownBody([]byte("å€")), "å€")
	require.NotContains(t, console.ShownBody([]byte("å€")[:4]), `\x`)
	require.Contains(t, console.ShownBody([]byte("\xff")), `\xff`)
}
