// An actor in Java 17 or later, without packages: it consumes its bundles from the message hub.

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpHeaders;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.time.format.DateTimeParseException;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;

public class Actor {
    private static final Duration TIMEOUT = Duration.ofSeconds(100); // until the headers of a response; longer than the hub waits for data
    private static final Duration MAX_RETRY_AFTER = Duration.ofMinutes(10);
    private static final long MAX_BUNDLE = 1L << 30; // bytes

    /** Handles a bundle. If it throws, the bundle is delivered again. */
    public interface Handler {
        void handle(String id, HttpHeaders headers, byte[] body) throws Exception;
    }

    /** Waits. */
    public interface Sleep {
        void sleep(Duration d) throws InterruptedException;
    }

    /** The hub refused a request. The message contains the problem document, which says why. */
    public static class Refused extends IOException {
        public final int status;
        public final Duration retryAfter;

        Refused(int status, HttpHeaders headers, String body) {
            super("the hub responded " + status + ": " + body);
            this.status = status;
            this.retryAfter = retryAfter(headers);
        }

        boolean isTemporary() {
            return Set.of(429, 502, 503, 504).contains(status);
        }
    }

    /** The body was received incompletely, or belongs to another bundle. */
    public static class NotReceived extends IOException {
        NotReceived(String text) {
            super(text);
        }
    }

    public record Bundle(String id, HttpHeaders headers, byte[] body) {}

    private final HttpClient http = HttpClient.newHttpClient(); // follows no redirects, because requests contain a token
    private final String url, name;
    private final Supplier<String> token;
    private final Sleep sleep;

    /** token returns the token of the actor; it may be null for a hub that needs no tokens. */
    public Actor(String url, String name, Supplier<String> token, Sleep sleep) {
        this.url = url.replaceAll("/+$", "");
        this.name = name;
        this.token = token;
        this.sleep = sleep;
    }

    /** Returns the value of Retry-After. A date in it is compared with the header Date of the response. */
    static Duration retryAfter(HttpHeaders headers) {
        String text = headers.firstValue("Retry-After").orElse("");
        Duration pause = Duration.ZERO;
        if (text.matches("\\d{1,9}")) {
            pause = Duration.ofSeconds(Long.parseLong(text));
        } else {
            try {
                DateTimeFormatter format = DateTimeFormatter.RFC_1123_DATE_TIME;
                pause = Duration.between(ZonedDateTime.parse(headers.firstValue("Date").orElse(""), format), ZonedDateTime.parse(text, format));
            } catch (DateTimeParseException e) {
                return pause; // the header is missing or not valid
            }
        }
        if (pause.isNegative()) return Duration.ZERO;
        return pause.compareTo(MAX_RETRY_AFTER) > 0 ? MAX_RETRY_AFTER : pause;
    }

    /** Sends a request once and returns the response. The caller reads its body. */
    private HttpResponse<InputStream> call(String method, String path, String... headers) throws IOException, InterruptedException {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(url + path)).timeout(TIMEOUT)
            .method(method, HttpRequest.BodyPublishers.noBody()).header("X-Actor-Id", name);
        if (headers.length > 0) request.headers(headers);
        if (token != null) request.header("Authorization", "Bearer " + token.get());
        HttpResponse<InputStream> response = http.send(request.build(), HttpResponse.BodyHandlers.ofInputStream());
        if (response.statusCode() / 100 == 2) return response;
        try (InputStream body = response.body()) {
            throw new Refused(response.statusCode(), response.headers(), new String(body.readNBytes(1 << 20), StandardCharsets.UTF_8));
        }
    }

    /** Returns the next bundle, or null if no data has arrived. id, if not null, is the id for a new bundle. */
    public Bundle peek(String id, int wait) throws IOException, InterruptedException {
        HttpResponse<InputStream> response = call("GET", "/v1/peek?wait=" + wait + "s" + (id == null ? "" : "&bundleId=" + id));
        if (response.statusCode() == 204) return null;
        String opened = response.headers().firstValue("MessageId").orElseThrow(() -> new NotReceived("the response is not a bundle"));
        return new Bundle(opened, response.headers(), receive(opened, response));
    }

    /** Returns the whole body of a bundle. If the connection breaks, it fetches the rest of the body. */
    private byte[] receive(String id, HttpResponse<InputStream> response) throws IOException, InterruptedException {
        String tag = response.headers().firstValue("ETag").orElse("");
        long size = response.headers().firstValueAsLong("Content-Length").orElse(-1);
        if (size < 0 || size > MAX_BUNDLE) throw new NotReceived("bundle " + id + " has " + size + " bytes");
        ByteArrayOutputStream body = new ByteArrayOutputStream();
        readInto(body, response);
        int failures = 0;
        for (Pauses pauses = new Pauses(5_000); body.size() < size; ) {
            sleep.sleep(pauses.next());
            int before = body.size();
            try {
                HttpResponse<InputStream> rest = call("GET", "/v1/bundles/" + id, "Range", "bytes=" + before + "-", "If-Range", tag);
                if (!rest.headers().firstValue("ETag").orElse("").equals(tag)) throw new NotReceived("the hub responded with another body");
                if (rest.statusCode() == 200) {
                    body.reset(); // the response is the whole body
                } else if (!rest.headers().firstValue("Content-Range").orElse("").startsWith("bytes " + before + "-")) {
                    throw new NotReceived("the hub responded with another part of the body");
                }
                readInto(body, rest);
            } catch (NotReceived e) {
                throw e;
            } catch (Refused e) {
                if (!e.isTemporary()) throw new NotReceived("the rest of the body cannot be fetched: " + e.getMessage());
                sleep.sleep(e.retryAfter);
            } catch (IOException e) {
                // the hub cannot be reached
            }
            failures = body.size() > before ? 0 : failures + 1;
            if (failures == 0) pauses.reset();
            if (failures > 10) throw new NotReceived("bundle " + id + " broke off after " + body.size() + " of " + size + " bytes");
        }
        return body.toByteArray();
    }

    /** Reads the body of a response until its end, or until the connection breaks. */
    private static void readInto(ByteArrayOutputStream body, HttpResponse<InputStream> response) {
        try (InputStream in = response.body()) {
            in.transferTo(body);
        } catch (IOException e) {
            // the connection broke
        }
    }

    /**
     * Confirms a bundle. isLost says whether the response to an earlier attempt was lost. Returns false if
     * another process of the actor has dequeued the bundle.
     */
    public boolean dequeue(String id, boolean isLost) throws IOException, InterruptedException {
        try {
            call("DELETE", "/v1/dequeue/" + id).body().close();
            return true;
        } catch (Refused e) {
            if (e.status != 404 && e.status != 410) throw e;
            return isLost; // after a lost response, the earlier attempt dequeued the bundle
        }
    }

    /**
     * Passes each bundle to handler and dequeues the bundle when handler returns. handler may get a bundle more than once, so
     * it has to skip the events that it has already processed.
     */
    public void consume(Handler handler, BooleanSupplier isStopped) throws IOException, InterruptedException {
        String id = null, handled = null;
        boolean isOpen = false, isLost = false;
        Pauses pauses = new Pauses(60_000);
        while (!isStopped.getAsBoolean()) {
            try {
                if (handled == null) {
                    long began = System.nanoTime();
                    if (id == null) id = UUID.randomUUID().toString(); // after a lost response, the Peek is repeated with the same id
                    Bundle bundle = isOpen ? peek(null, 0) : peek(id, 30);
                    isOpen = false;
                    if (bundle == null) {
                        // After an early response, the hub is stopping, or the open bundle was dequeued.
                        if (System.nanoTime() - began < Duration.ofSeconds(15).toNanos()) sleep.sleep(new Pauses(1_000).next());
                        continue;
                    }
                    id = bundle.id();
                    handler.handle(bundle.id(), bundle.headers(), bundle.body());
                    handled = id;
                    isLost = false;
                }
                dequeue(handled, isLost);
                id = handled = null;
                pauses.reset();
            } catch (InterruptedException e) {
                throw e;
            } catch (Exception e) { // including errors of the handler
                Refused refused = e instanceof Refused r ? r : null;
                if (refused != null && refused.status == 409 && handled == null) {
                    id = null; // another bundle is open, perhaps opened by a process that has ended: the next Peek returns it
                    isOpen = true;
                    continue;
                }
                if (refused != null && refused.status == 409) {
                    handled = null; // the content was deleted and produced again since it was fetched: fetch it again
                } else if (refused != null && !refused.isTemporary()) {
                    throw refused;
                }
                if (handled != null && (refused == null || refused.status >= 500)) isLost = true;
                System.err.println("the attempt is repeated: " + e);
                sleep.sleep(pauses.next().plus(refused == null ? Duration.ZERO : refused.retryAfter));
            }
        }
    }

    /** Returns pauses that grow up to a limit and vary at random. */
    private static class Pauses {
        private final long limit;
        private long next = 100;

        Pauses(long limit) {
            this.limit = limit;
        }

        Duration next() {
            long pause = ThreadLocalRandom.current().nextLong(next / 2, next + 1);
            next = Math.min(2 * next, limit);
            return Duration.ofMillis(pause);
        }

        void reset() {
            next = 100;
        }
    }
}
