// Not compiled and not run, because .NET was not available. Try it with `dotnet run` on .NET 8 or later, against `messagehub serve --in-memory`.
//
// An actor in C#, without packages: it consumes its bundles from the message hub.

using System.Diagnostics;
using System.Net;
using System.Net.Http.Headers;

/// The hub refused a request. The message contains the problem document, which says why.
public sealed class Refused(HttpStatusCode status, TimeSpan retryAfter, string problem) : Exception($"the hub responded {(int)status}: {problem}")
{
    public HttpStatusCode Status => status;
    public TimeSpan RetryAfter => retryAfter;
    public bool IsTemporary => (int)status is 429 or 502 or 503 or 504;
    public bool IsGone => (int)status is 404 or 410;
}

/// The body was received incompletely, or belongs to another bundle.
public sealed class NotReceived(string text) : Exception(text);

public sealed record Bundle(string Id, HttpResponseHeaders Headers, byte[] Body);

/// Consumes the bundles of an actor. token returns the token of the actor, for a hub that needs tokens.
public sealed class Actor(string url, string name, Func<Task<string>>? token = null)
{
    const long MaxBundle = 1L << 30; // bytes
    static readonly TimeSpan MaxRetryAfter = TimeSpan.FromMinutes(10);

    // http follows no redirects, because requests contain a token. It does not decompress bodies, so that a range counts
    // the received bytes.
    readonly HttpClient http = new(new SocketsHttpHandler { AllowAutoRedirect = false, AutomaticDecompression = DecompressionMethods.None })
    {
        BaseAddress = new Uri(url.TrimEnd('/')),
        Timeout = TimeSpan.FromSeconds(100), // until the headers of a response; longer than the hub waits for data
    };

    /// Sends a request once and returns the response. The caller reads its body.
    async Task<HttpResponseMessage> Call(HttpMethod method, string path, CancellationToken stop, long from = 0, string? tag = null)
    {
        using var request = new HttpRequestMessage(method, path);
        request.Headers.Add("X-Actor-Id", name);
        if (token != null) request.Headers.Authorization = new AuthenticationHeaderValue("Bearer", await token());
        if (tag != null)
        {
            request.Headers.Range = new RangeHeaderValue(from, null);
            request.Headers.IfRange = new RangeConditionHeaderValue(EntityTagHeaderValue.Parse(tag));
        }
        var response = await http.SendAsync(request, HttpCompletionOption.ResponseHeadersRead, stop);
        if (response.IsSuccessStatusCode) return response;
        using (response)
        {
            throw new Refused(response.StatusCode, RetryAfterOf(response), await response.Content.ReadAsStringAsync(stop));
        }
    }

    /// Returns the value of Retry-After. A date in it is compared with the header Date of the response, not with the local clock.
    static TimeSpan RetryAfterOf(HttpResponseMessage response)
    {
        var after = response.Headers.RetryAfter;
        var pause = after?.Delta ?? (after?.Date - response.Headers.Date) ?? TimeSpan.Zero;
        return pause < TimeSpan.Zero ? TimeSpan.Zero : pause > MaxRetryAfter ? MaxRetryAfter : pause;
    }

    /// Returns the next bundle, or null if no data has arrived. id, if not null, is the id for a new bundle.
    public async Task<Bundle?> Peek(string? id, int wait, CancellationToken stop)
    {
        var response = await Call(HttpMethod.Get, $"/v1/peek?wait={wait}s" + (id == null ? "" : $"&bundleId={id}"), stop);
        if (response.StatusCode == HttpStatusCode.NoContent)
        {
            response.Dispose();
            return null;
        }
        var opened = response.Headers.GetValues("MessageId").Single();
        return new Bundle(opened, response.Headers, await Receive(opened, response, stop));
    }

    /// Returns the whole body of a bundle. If the connection breaks, it fetches the rest of the body.
    async Task<byte[]> Receive(string id, HttpResponseMessage response, CancellationToken stop)
    {
        var tag = response.Headers.ETag?.ToString() ?? throw new NotReceived("the response is not a bundle");
        var size = response.Content.Headers.ContentLength ?? -1;
        if (size < 0 || size > MaxBundle) throw new NotReceived($"bundle {id} has {size} bytes");
        var body = new MemoryStream();
        await ReadInto(body, response, stop);
        var pauses = new Pauses(5_000);
        for (var failures = 0; body.Length < size;)
        {
            await Task.Delay(pauses.Next(), stop);
            var before = body.Length;
            try
            {
                var rest = await Call(HttpMethod.Get, $"/v1/bundles/{id}", stop, before, tag);
                if (rest.Headers.ETag?.ToString() != tag) throw new NotReceived("the hub responded with another body");
                if (rest.StatusCode == HttpStatusCode.OK) body.SetLength(0); // the response is the whole body
                else if (rest.Content.Headers.ContentRange?.From != before) throw new NotReceived("the hub responded with another part of the body");
                await ReadInto(body, rest, stop);
            }
            catch (Refused e) when (e.IsTemporary)
            {
                await Task.Delay(e.RetryAfter, stop);
            }
            catch (Refused e) // 404: another process of the actor has dequeued the bundle
            {
                throw new NotReceived($"the rest of the body cannot be fetched: {e.Message}");
            }
            catch (HttpRequestException)
            {
                // the hub cannot be reached
            }
            failures = body.Length > before ? 0 : failures + 1;
            if (failures == 0) pauses.Reset();
            if (failures > 10) throw new NotReceived($"bundle {id} broke off after {body.Length} of {size} bytes");
        }
        return body.ToArray();
    }

    /// Reads the body of a response until its end, or until the connection breaks.
    static async Task ReadInto(MemoryStream body, HttpResponseMessage response, CancellationToken stop)
    {
        using (response)
        {
            try
            {
                await response.Content.CopyToAsync(body, stop);
            }
            catch (Exception e) when (e is HttpRequestException or IOException)
            {
                // the connection broke
            }
        }
    }

    /// Confirms a bundle. isLost says whether the response to an earlier attempt was lost. Returns false if
    /// another process of the actor has dequeued the bundle.
    public async Task<bool> Dequeue(string id, bool isLost, CancellationToken stop)
    {
        try
        {
            (await Call(HttpMethod.Delete, $"/v1/dequeue/{id}", stop)).Dispose();
            return true;
        }
        catch (Refused e) when (e.IsGone)
        {
            return isLost; // after a lost response, the earlier attempt dequeued the bundle
        }
    }

    /// Passes each bundle to handle and dequeues the bundle when handle returns, until stop is cancelled. If handle throws,
    /// the bundle is delivered again. So handle has to skip the events that it has already processed.
    public async Task Consume(Func<Bundle, CancellationToken, Task> handle, CancellationToken stop)
    {
        string? id = null, handled = null;
        var (isOpen, isLost) = (false, false);
        var pauses = new Pauses(60_000);
        while (!stop.IsCancellationRequested)
        {
            try
            {
                if (handled == null)
                {
                    var began = Stopwatch.GetTimestamp(); // a monotonic clock
                    id ??= Guid.NewGuid().ToString(); // after a lost response, the Peek is repeated with the same id
                    var bundle = isOpen ? await Peek(null, 0, stop) : await Peek(id, 30, stop);
                    isOpen = false;
                    if (bundle == null)
                    {
                        // After an early response, the hub is stopping, or the open bundle was dequeued.
                        if (Stopwatch.GetElapsedTime(began) < TimeSpan.FromSeconds(15)) await Task.Delay(new Pauses(1_000).Next(), stop);
                        continue;
                    }
                    id = bundle.Id;
                    await handle(bundle, stop);
                    (handled, isLost) = (id, false);
                }
                await Dequeue(handled, isLost, CancellationToken.None); // also after a stop, because the bundle was handled
                (id, handled) = (null, null);
                pauses.Reset();
            }
            catch (OperationCanceledException) when (stop.IsCancellationRequested)
            {
                return;
            }
            catch (Refused e) when (e.Status == HttpStatusCode.Conflict && handled == null)
            {
                (id, isOpen) = (null, true); // another bundle is open, perhaps opened by a process that has ended: the next Peek returns it
            }
            catch (Exception e) when (e is not Refused { IsTemporary: false, Status: not HttpStatusCode.Conflict }) // including errors of handle
            {
                // After a conflict, the content was deleted and produced again since it was fetched: fetch it again.
                if (e is Refused { Status: HttpStatusCode.Conflict }) handled = null;
                if (handled != null && (e is not Refused r || (int)r.Status >= 500)) isLost = true;
                Console.Error.WriteLine($"the attempt is repeated: {e.Message}");
                await Task.Delay(pauses.Next() + ((e as Refused)?.RetryAfter ?? TimeSpan.Zero), CancellationToken.None);
            }
        }
    }

    /// Returns pauses that grow up to a limit and vary at random.
    sealed class Pauses(double limit)
    {
        double next = 100;

        public TimeSpan Next()
        {
            var pause = next * (0.5 + Random.Shared.NextDouble() / 2);
            next = Math.Min(2 * next, limit);
            return TimeSpan.FromMilliseconds(pause);
        }

        public void Reset() => next = 100;
    }
}
