package busclient_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/internal/busclient"
)

func TestClassify(t *testing.T) {
	code := func(c azservicebus.Code) error { return &azservicebus.Error{Code: c} }
	condition := func(c amqp.ErrCond) error { return &amqp.Error{Condition: c, Description: "said the bus"} }
	link := func(c amqp.ErrCond) error { return &amqp.LinkError{RemoteErr: &amqp.Error{Condition: c}} }
	type what struct {
		reason                      busclient.Reason
		retry, once, permanent      bool
		replaceClient, replacesLink bool
	}
	for name, tc := range map[string]struct {
		err  error
		want what
	}{
		"no error":                       {nil, what{reason: busclient.None}},
		"an unknown error":               {errors.New("?"), what{reason: busclient.Unreachable, retry: true, replaceClient: true}},
		"the end of a context":           {context.DeadlineExceeded, what{reason: busclient.Unreachable, retry: true, replaceClient: true}},
		"a lost connection":              {code(azservicebus.CodeConnectionLost), what{reason: busclient.Unreachable, retry: true, replaceClient: true}},
		"a lost lock":                    {code(azservicebus.CodeLockLost), what{reason: busclient.LockLost, retry: true, replaceClient: true}},
		"no session":                     {code(azservicebus.CodeTimeout), what{reason: busclient.Timeout, retry: true, replaceClient: true}},
		"a closed client":                {code(azservicebus.CodeClosed), what{reason: busclient.Closed, retry: true, replaceClient: true, permanent: true}},
		"no queue":                       {code(azservicebus.CodeNotFound), what{reason: busclient.NotFound, permanent: true}},
		"no queue, said the bus":         {condition(amqp.ErrCondNotFound), what{reason: busclient.NotFound, permanent: true}},
		"a wrong key":                    {code(azservicebus.CodeUnauthorizedAccess), what{reason: busclient.Unauthorized, retry: true, once: true, replaceClient: true, permanent: true}},
		"a wrong key, said the bus":      {condition(amqp.ErrCondUnauthorizedAccess), what{reason: busclient.Unauthorized, retry: true, once: true, replaceClient: true, permanent: true}},
		"no sessions":                    {condition(amqp.ErrCondNotAllowed), what{reason: busclient.NotAllowed, permanent: true}},
		"a large message":                {fmt.Errorf("add: %w", azservicebus.ErrMessageTooLarge), what{reason: busclient.TooLarge, permanent: true}},
		"a large message, said the bus":  {condition(amqp.ErrCondMessageSizeExceeded), what{reason: busclient.TooLarge, permanent: true}},
		"a full queue":                   {condition(amqp.ErrCondResourceLimitExceeded), what{reason: busclient.Full}},
		"a disabled queue":               {condition("com.microsoft:entity-disabled"), what{reason: busclient.Disabled}},
		"a session of another":           {condition("com.microsoft:session-cannot-be-locked"), what{reason: busclient.SessionHeld, retry: true}},
		"a link without a queue":         {link(amqp.ErrCondNotFound), what{reason: busclient.NotFound, retry: true, once: true, replacesLink: true}},
		"a link that was refused access": {link(amqp.ErrCondUnauthorizedAccess), what{reason: busclient.Unauthorized, retry: true, once: true, replaceClient: true, replacesLink: true}},
		"a link that ended unexplained":  {&amqp.LinkError{}, what{reason: busclient.Unreachable, retry: true, replaceClient: true, replacesLink: true}},
	} {
		t.Run(name, func(t *testing.T) {
			f := busclient.Classify(tc.err)
			require.Equal(t, tc.want, what{f.Reason, f.Retry, f.RetryOnce, f.Permanent, f.ReplaceClient, f.LinkEnded})
			require.Equal(t, tc.want.reason, busclient.ReasonOf(tc.err))
			if tc.err != nil {
				require.NotEmpty(t, f.Advice)
				require.Equal(t, f.Advice+": "+busclient.Printable(tc.err.Error()), f.Error())
			}
		})
	}
}

// A Failure does not wrap the error that it classifies. If it wrapped the DeadlineExceeded of an
// internal context, a caller could conclude that its own context has ended.
func TestAFailureDoesNotWrapItsError(t *testing.T) {
	require.NotErrorIs(t, busclient.Classify(context.DeadlineExceeded), context.DeadlineExceeded)
}

func TestPrintableTextIsShortAndOnOneLine(t *testing.T) {
	require.Equal(t, "a b \uFFFDc", busclient.Printable("a\nb\x00\xffc"))
	long := busclient.Printable(strings.Repeat("ä", 1000))
	require.Equal(t, strings.Repeat("ä", 250)+"…", long)
}
