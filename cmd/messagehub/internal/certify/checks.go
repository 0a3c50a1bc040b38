package certify

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/messagehub/messagehub/api/webhook"
	"github.com/messagehub/messagehub/cosmos/embedded/loopback"
)

// A check tests whether a receiver has one property of a correct receiver.
type check struct {
	name   string // property of a correct receiver
	level  Level
	advice string // next step after a failure

	always bool                     // run the check even if the first call was not accepted
	skip   func(*certifyRun) string // returns the reason for skipping the check, or ""; if nil, the check is never skipped
	run    func(context.Context, *certifyRun) (checkVerdict, error)
}

// A checkVerdict is the result of the calls of a check.
type checkVerdict struct {
	isRight bool
	saw     string
	advice  string // replaces the check's advice, unless it is ""
}

// Advice that several checks share.
const (
	verifyAdvice = "Verify the signature of the raw body before anything reads it, and answer 401 if it is not valid. " +
		"A library of Standard Webhooks does all of it: standardwebhooks for many languages."
	digestAdvice = "Compute the SHA-256 of the raw body and compare it with Digest, compute the HMAC of date and digest and compare it " +
		"with Authorization, and answer 401 if one of them differs."
	ageAdvice = "Compare the time of the call, which is signed, with the clock, and answer 401 if they differ by more than 5 minutes. " +
		"Otherwise a call that was recorded can be sent again."
)

// checks lists all checks in the order in which they run. Checks that may harm
// a receiver are last, before the check that the receiver still works.
var checks = []check{
	{
		name: "accepts a call", level: Must, always: true, run: sendFirst,
		advice: "Answer 2xx to a call of the hub. Until then the hub repeats it, and nothing else can be checked.",
	},
	{
		name: "answers without a redirect", level: Must, always: true, skip: skipUnanswered, run: checkRedirect,
		advice: "Subscribe with the URL that it redirects to: the hub does not follow redirects, as an attacker could lead it elsewhere.",
	},
	{
		name: "is called by HTTPS", level: Should, always: true, skip: skipLoopback, run: checkHTTPS,
		advice: "Serve HTTPS. By HTTP others can read the messages, and most hubs do not call.",
	},
	{
		name: "answers with a short body", level: Should, run: checkLength,
		advice: fmt.Sprintf("Answer with 204 or a short body: the hub keeps %d KB of it, and a body above 64 KB is a failed call.", webhook.MaxBody>>10),
	},
	{
		name: "accepts the same id again", level: Must, run: repeat,
		advice: "Answer 2xx to an id that was processed before, and do nothing. A call is repeated if its answer was lost, and until it is answered with 2xx.",
	},
	{
		name: "ignores a header that it does not know", level: Must,
		run:    expectAccepted(func(r *http.Request) { r.Header.Set("X-Unknown-To-Receivers", "1") }),
		advice: "Ignore headers that are not known. Proxies and newer hubs add some.",
	},
	{
		name: "ignores a member that it does not know", level: Must, run: sendUnknownMember,
		advice: "Ignore members of the event that are not known. A newer hub, or another sender, adds some.",
	},
	{
		name: "accepts calls at the same time", level: Should, run: sendMany,
		advice: "Accept several calls at a time, or answer 429 with Retry-After; the hub then waits.",
	},
	{
		name: "accepts a large body", level: Should, run: sendLarge,
		advice: "Raise the limit for bodies: a message has up to 1 MB, and one that is refused becomes a dead letter. Frameworks often have a limit of 100 KB.",
	},
	{
		name: "accepts a body that arrives slowly", level: Should, run: sendSlowly,
		advice: "Wait for the body for some seconds: the time between two packets may be long on a busy network.",
	},
	{
		name: "accepts one valid signature of several", level: Must, skip: skipWithoutSecret, run: sendTwoSignatures,
		advice: "Accept a call if any of the signatures in webhook-signature is valid; they are separated by blanks. While a secret is replaced the hub signs with both.",
	},
	{
		name: "ignores signatures of unknown versions", level: Must, skip: skipWithoutSecret,
		run: expectAccepted(func(r *http.Request) {
			r.Header.Set("Webhook-Signature", "v9,AAAA "+r.Header.Get("Webhook-Signature"))
		}),
		advice: "Skip entries of webhook-signature whose version is not known, and verify the others.",
	},
	{
		name: "refuses a call without a signature", level: Must, skip: skipUnsigned, advice: verifyAdvice,
		run: expectRefused(removeSignatures),
	},
	{
		name: "refuses a changed body", level: Must, skip: skipUnsigned, advice: verifyAdvice,
		run: expectRefused(tamperBody),
	},
	{
		name: "refuses a changed body with its digest", level: Must, skip: skipWithoutHMAC, advice: digestAdvice,
		run: expectRefused(tamperBody, renewDigest),
	},
	{
		name: "refuses a changed id", level: Must, skip: skipUnlessOnlySecret, advice: verifyAdvice,
		run: expectRefused(func(r *http.Request) { r.Header.Set("Webhook-Id", r.Header.Get("Webhook-Id")+"0") }),
	},
	{
		name: "refuses a signature by another secret", level: Must, skip: skipUnsigned, advice: verifyAdvice,
		run: signWithOther,
	},
	{
		name: "refuses a signature that cannot be read", level: Must, skip: skipUnsigned, advice: verifyAdvice,
		run: expectRefused(breakSignatures),
	},
	{
		name: "refuses a call that is an hour old", level: Must, skip: skipUnsigned, advice: ageAdvice,
		run: expectRefusedAt(-time.Hour),
	},
	{
		name: "refuses a call of an hour ahead", level: Should, skip: skipUnsigned, advice: ageAdvice,
		run: expectRefusedAt(time.Hour),
	},
	{
		name: "refuses with 400, 401 or 403", level: Should, skip: skipUnsigned, run: checkRefusals,
		advice: "Answer 401 if a call cannot be verified. 5xx looks like a failure of the receiver, and 410 like the end of the subscription.",
	},
	{
		name: "works after calls that break off", level: Must, run: sendAfterBroken,
		advice: "Read the log of the receiver: an interrupted call, or one of the calls above, has stopped it.",
	},
	{
		name: "answers quickly", level: Should, run: checkTime,
		advice: "Store the message, answer, and process it then. A slow answer holds one of the few calls that the hub makes to a receiver at a time.",
	},
}

func skipUnanswered(s *certifyRun) string {
	if s.first.Status == 0 {
		return "there was no answer"
	}
	return ""
}

// notSigned is the reason for skipping the signature checks if the receiver's
// secret is unknown.
const notSigned = "no --secret or --hmac-key is given"

func skipUnsigned(s *certifyRun) string {
	if !s.isSigned() {
		return notSigned
	}
	return ""
}

func skipWithoutSecret(s *certifyRun) string {
	if len(s.opts.Secrets) == 0 {
		return "no --secret is given"
	}
	return ""
}

func skipWithoutHMAC(s *certifyRun) string {
	if s.opts.HMACKey == "" {
		return "no --hmac-key is given"
	}
	return ""
}

// skipUnlessOnlySecret skips a check of the signed id if the receiver has an
// HMAC key, because the HMAC signature in the Authorization header does not
// cover the id.
func skipUnlessOnlySecret(s *certifyRun) string {
	if s.opts.HMACKey != "" && len(s.opts.Secrets) > 0 {
		return "--hmac-key does not sign the id"
	}
	return skipWithoutSecret(s)
}

func skipLoopback(s *certifyRun) string {
	if u, err := url.Parse(s.opts.Settings.CallbackURL); err == nil && loopback.IsDestination(u.Hostname()) {
		return "it is on this machine"
	}
	return ""
}
