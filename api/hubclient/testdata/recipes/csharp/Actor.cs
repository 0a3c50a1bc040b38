// Not compiled and not run: no .NET was to be had. Try it with `dotnet run` on .NET 8 or later, against `messagehub serve --in-memory`.
//
// An actor in C#, without packages: it consumes its bundles from the message hub.

using System.Diagnostics;
using System.Net;
using System.Net.Http.Headers;

/// The hub refuses a request. The message has the problem document, which says why.
public sealed class Refused(HttpStatusCode status, TimeSpan retryAfter, string problem) : Exception($"the hub answered {(int)status}: {problem}")
{
    public HttpStatusCode Status => status;
    public TimeSpan RetryAfter => retryAfter;
    public bool IsTemporary => (int)status is 429 or 502 or 503 or 504;
    public bool IsGone => (int)status is 404 or 410;
}

/// The body was not received to its end, or is that of another bundle.
public sealed class NotReceived(string text) : Exception(text);

public sealed record Bundle(string Id, HttpResponseHeaders Headers, byte[] Body);

/// Consumes the bundles of an actor. token returns its token; without one, the hub believes the name.
public sealed class Actor(string url, string name, Func<Task<string>>? token = null)
{
    const long MaxBundle = 1L << 30; // bytes
    static readonly TimeSpan MaxRetryAfter = TimeSpan.FromMinutes(10);

    // It follows no redirects, because requests carry a token, and leaves bodies as they are, whose bytes can be counted.
    readonly HttpClient http = new(new SocketsHttpHandler { AllowAutoRedirect = false, AutomaticDecompression = DecompressionMethods.None })
    {
        BaseAddress = new Uri(url.TrimEnd('/')),
        Timeout = TimeSpan.FromSeconds(100), // for the beginning of an answer: longer than a hub waits for data
    };

    /// Sends a request once and returns the answer, whose body is read by the caller.
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
        var answer = await http.SendAsync(request, HttpCompletionOption.ResponseHeadersRead, stop);
        if (answer.IsSuccessStatusCode) return answer;
        using (answer)
        {
            throw new Refused(answer.StatusCode, RetryAfterOf(answer), await answer.Content.ReadAsStringAsync(stop));
        }
    }

    /// The pause that an answer asks for. A date is compared with that of the answer, not with the clock of this machine.
    static TimeSpan RetryAfterOf(HttpResponseMessage answer)
    {
        var after = answer.Headers.RetryAfter;
        var pause = after?.Delta ?? (after?.Date - answer.Headers.Date) ?? TimeSpan.Zero;
        return pause < TimeSpan.Zero ? TimeSpan.Zero : pause > MaxRetryAfter ? MaxRetryAfter : pause;
    }

    /// Returns the next bundle, null if no data has come. An id that is not null is that of a bundle to be opened.
    public async Task<Bundle?> Peek(string? id, int wait, CancellationToken stop)
    {
        var answer = await Call(HttpMethod.Get, $"/v1/peek?wait={wait}s" + (id == null ? "" : $"&bundleId={id}"), stop);
        if (answer.StatusCode == HttpStatusCode.NoContent)
        {
            answer.Dispose();
            return null;
        }
        var opened = answer.Headers.GetValues("MessageId").Single();
        return new Bundle(opened, answer.Headers, await Receive(opened, answer, stop));
    }

    /// Returns the whole body of a bundle: if the connection breaks, it fetches the rest of that bundle.
    async Task<byte[]> Receive(string id, HttpResponseMessage answer, CancellationToken stop)
    {
        var tag = answer.Headers.ETag?.ToString() ?? throw new NotReceived("the answer is no bundle");
        var size = answer.Content.Headers.ContentLength ?? -1;
        if (size < 0 || size > MaxBundle) throw new NotReceived($"bundle {id} has {size} bytes");
        var body = new MemoryStream();
        await ReadInto(body, answer, stop);
        var pauses = new Pauses(5_000);
        for (var failures = 0; body.Length < size;)
        {
            await Task.Delay(pauses.Next(), stop);
            var before = body.Length;
            try
            {
                var rest = await Call(HttpMethod.Get, $"/v1/bundles/{id}", stop, before, tag);
                if (rest.Headers.ETag?.ToString() != tag) throw new NotReceived("the hub answered with another body");
                if (rest.StatusCode == HttpStatusCode.OK) body.SetLength(0); // the whole once more
                else if (rest.Content.Headers.ContentRange?.From != before) throw new NotReceived("the hub answered with another part of the body");
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
                // no connection
            }
            failures = body.Length > before ? 0 : failures + 1;
            if (failures == 0) pauses.Reset();
            if (failures > 10) throw new NotReceived($"bundle {id} broke off after {body.Length} of {size} bytes");
        }
        return body.ToArray();
    }

    /// Reads what arrives of an answer.
    static async Task ReadInto(MemoryStream body, HttpResponseMessage answer, CancellationToken stop)
    {
        using (answer)
        {
            try
            {
                await answer.Content.CopyToAsync(body, stop);
            }
            catch (Exception e) when (e is HttpRequestException or IOException)
            {
                // the connection broke
            }
        }
    }

    /// Confirms a bundle that was handed out. isLost says that the answer to an earlier attempt was lost. It returns false if
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
            return isLost; // then that attempt was it
        }
    }

    /// Passes each bundle to handle and dequeues it when that returns, until stop is cancelled. If handle throws, the bundle is
    /// delivered again: handle may get a bundle more than once, and skips the events whose ids it has.
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
                    var began = Stopwatch.GetTimestamp(); // of a clock that never jumps
                    id ??= Guid.NewGuid().ToString(); // a peek whose answer is lost is repeated for the same bundle
                    var bundle = isOpen ? await Peek(null, 0, stop) : await Peek(id, 30, stop);
                    isOpen = false;
                    if (bundle == null)
                    {
                        // At once: the hub is about to stop, or the bundle that was open is dequeued.
                        if (Stopwatch.GetElapsedTime(began) < TimeSpan.FromSeconds(15)) await Task.Delay(new Pauses(1_000).Next(), stop);
                        continue;
                    }
                    id = bundle.Id;
                    await handle(bundle, stop);
                    (handled, isLost) = (id, false);
                }
                await Dequeue(handled, isLost, CancellationToken.None); // a bundle that was handled is dequeued, also at the end
                (id, handled) = (null, null);
                pauses.Reset();
            }
            catch (OperationCanceledException) when (stop.IsCancellationRequested)
            {
                return;
            }
            catch (Refused e) when (e.Status == HttpStatusCode.Conflict && handled == null)
            {
                (id, isOpen) = (null, true); // another bundle is open, perhaps of a process that has ended: the next Peek takes it
            }
            catch (Exception e) when (e is not Refused { IsTemporary: false, Status: not HttpStatusCode.Conflict }) // of handle, too
            {
                // A conflict: its content was deleted, and made again, since it was fetched. It is fetched again.
                if (e is Refused { Status: HttpStatusCode.Conflict }) handled = null;
                if (handled != null && (e is not Refused r || (int)r.Status >= 500)) isLost = true;
                Console.Error.WriteLine($"the attempt is repeated: {e.Message}");
                await Task.Delay(pauses.Next() + ((e as Refused)?.RetryAfter ?? TimeSpan.Zero), CancellationToken.None);
            }
        }
    }

    /// Pauses that grow up to a limit, and vary.
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
