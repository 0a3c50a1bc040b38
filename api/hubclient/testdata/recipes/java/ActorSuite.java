// Tests the recipe for Java against a hub that the suite starts. MESSAGEHUB is the path of the hub's program.

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.BufferedReader;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.UUID;
import java.util.concurrent.Executors;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

public class ActorSuite {
    private static final byte[] BODY = "[{\"id\":\"1\"},{\"id\":\"2\"}]".getBytes(StandardCharsets.UTF_8);
    private static String url;

    interface Test {
        void run() throws Exception;
    }

    interface Step {
        void answer(HttpExchange exchange) throws IOException;
    }

    public static void main(String[] args) throws Exception {
        ProcessBuilder builder = new ProcessBuilder(System.getenv("MESSAGEHUB"), "serve", "--in-memory", "--listen", "127.0.0.1:0", "--bus-listen=", "--blob-listen=");
        builder.environment().put("MESSAGEHUB_ADMIN_TOKEN", "a-token-of-the-operators");
        builder.redirectError(ProcessBuilder.Redirect.DISCARD);
        Process hub = builder.start();
        int passed = 0;
        Map<String, Test> tests = Map.of(
            "consumes all events in order", ActorSuite::consumesInOrder,
            "delivers again what was not handled", ActorSuite::deliversAgain,
            "takes the bundle that is open", ActorSuite::takesOpenBundle,
            "resumes a body that broke off", ActorSuite::resumes,
            "honours Retry-After and handles once", ActorSuite::honoursRetryAfter,
            "fetches again what was made again", ActorSuite::fetchesAgain,
            "not found is success only after a lost response", ActorSuite::dequeuesOnce);
        try {
            BufferedReader lines = hub.inputReader();
            for (String line; url == null && (line = lines.readLine()) != null; ) {
                Matcher found = Pattern.compile("listens on (\\S+) and").matcher(line);
                if (found.find()) url = found.group(1);
            }
            for (Map.Entry<String, Test> test : tests.entrySet()) {
                try {
                    test.getValue().run();
                    passed++;
                } catch (Exception | AssertionError e) {
                    System.out.println("failed: " + test.getKey());
                    e.printStackTrace(System.out);
                }
            }
        } finally {
            hub.destroy();
            hub.waitFor();
        }
        System.out.println(passed + " of " + tests.size() + " passed");
        System.exit(passed == tests.size() ? 0 : 1);
    }

    static void check(Object want, Object got) {
        if (!want.equals(got)) throw new AssertionError("want " + want + ", got " + got);
    }

    /** Announces events for a new actor. Returns the name of the actor, followed by the ids of the events. */
    static List<String> announce(int n) throws Exception {
        List<String> ids = new ArrayList<>(List.of(UUID.randomUUID().toString()));
        StringBuilder events = new StringBuilder();
        for (int i = 0; i < n; i++) {
            ids.add(UUID.randomUUID().toString());
            events.append(i == 0 ? "[" : ",").append(String.format("{\"id\":\"%s\",\"recipient\":\"%s\",\"origin\":\"TimeSeries\",\"contentType\":\"m\","
                + "\"documentType\":\"D18\",\"supportsBundling\":true,\"weight\":1}", ids.get(i + 1), ids.get(0)));
        }
        HttpRequest request = HttpRequest.newBuilder(URI.create(url + "/v1/data-available")).header("Content-Type", "application/json")
            .POST(HttpRequest.BodyPublishers.ofString(events + "]")).build();
        check(202, HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.discarding()).statusCode());
        return ids;
    }

    static Actor actor(String name) {
        return new Actor(url, name, null, d -> {});
    }

    static void consumesInOrder() throws Exception {
        List<String> ids = announce(2500), got = new ArrayList<>();
        Pattern id = Pattern.compile("\"id\":\"([^\"]+)\"");
        actor(ids.get(0)).consume((bundle, headers, body) -> {
            for (Matcher m = id.matcher(new String(body, StandardCharsets.UTF_8)); m.find(); ) got.add(m.group(1));
        }, () -> got.size() == 2500);
        check(ids.subList(1, ids.size()), got);
    }

    static void deliversAgain() throws Exception {
        String name = announce(2).get(0);
        List<String> bundles = new ArrayList<>();
        actor(name).consume((bundle, headers, body) -> {
            bundles.add(bundle);
            if (bundles.size() == 1) throw new IllegalStateException("no room");
        }, () -> bundles.size() == 2);
        check(bundles.get(0), bundles.get(1));
        if (actor(name).peek(null, 0) != null) throw new AssertionError("it was not dequeued");
    }

    static void takesOpenBundle() throws Exception {
        String name = announce(1).get(0), opened = actor(name).peek(null, 0).id();
        List<String> bundles = new ArrayList<>();
        actor(name).consume((bundle, headers, body) -> bundles.add(bundle), () -> !bundles.isEmpty());
        check(List.of(opened), bundles);
    }

    /** Serves each request by the next of its steps. */
    static class Faulty implements AutoCloseable {
        final Queue<Step> steps;
        final List<String> seen = new ArrayList<>();
        final List<Duration> pauses = new ArrayList<>();
        final HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        final Actor actor = new Actor("http://127.0.0.1:" + server.getAddress().getPort(), "a", null, pauses::add);

        Faulty(Step... all) throws IOException {
            steps = new ArrayDeque<>(Arrays.asList(all));
            server.setExecutor(Executors.newSingleThreadExecutor(r -> {
                Thread thread = new Thread(r);
                thread.setDaemon(true);
                return thread;
            }));
            server.createContext("/", exchange -> {
                seen.add(exchange.getRequestMethod() + " " + exchange.getRequestURI());
                steps.remove().answer(exchange);
                exchange.close();
            });
            server.start();
        }

        @Override
        public void close() {
            server.stop(0);
        }
    }

    static Step problem(int status, String retryAfter) {
        return exchange -> {
            exchange.getResponseHeaders().set("Retry-After", retryAfter);
            exchange.sendResponseHeaders(status, -1);
        };
    }

    /** Sends the bytes of a body from the start of the requested range up to end. */
    static Step bundle(int end, String tag) {
        return exchange -> {
            String range = exchange.getRequestHeaders().getFirst("Range");
            int start = range == null ? 0 : Integer.parseInt(range.replaceAll("\\D", ""));
            exchange.getResponseHeaders().set("MessageId", "b");
            exchange.getResponseHeaders().set("ETag", tag);
            exchange.getResponseHeaders().set("Content-Range", "bytes " + start + "-" + (BODY.length - 1) + "/" + BODY.length);
            exchange.sendResponseHeaders(range == null ? 200 : 206, BODY.length - start);
            exchange.getResponseBody().write(BODY, start, end - start);
            exchange.getResponseBody().flush();
        };
    }

    static final Step OK = exchange -> exchange.sendResponseHeaders(200, -1);

    static void resumes() throws Exception {
        try (Faulty f = new Faulty(bundle(5, "t"), problem(503, "7"), bundle(9, "t"), bundle(BODY.length, "t"))) {
            check(new String(BODY), new String(f.actor.peek(null, 0).body()));
            check("GET /v1/bundles/b", f.seen.get(3));
            if (!f.pauses.contains(Duration.ofSeconds(7))) throw new AssertionError(f.pauses);
        }
        try (Faulty f = new Faulty(bundle(5, "t"), bundle(BODY.length, "u"))) {
            f.actor.peek(null, 0);
            throw new AssertionError("two bodies were mixed");
        } catch (Actor.NotReceived e) {
            check("the hub responded with another body", e.getMessage());
        }
    }

    static void honoursRetryAfter() throws Exception {
        List<String> handled = new ArrayList<>();
        try (Faulty f = new Faulty(problem(429, "30"), bundle(BODY.length, "t"), problem(503, "20"), problem(404, ""), problem(403, ""))) {
            f.actor.consume((bundle, headers, body) -> handled.add(bundle), () -> false);
        } catch (Actor.Refused e) {
            check(403, e.status);
        }
        check(List.of("b"), handled);
    }

    static void fetchesAgain() throws Exception {
        List<String> handled = new ArrayList<>();
        try (Faulty f = new Faulty(bundle(BODY.length, "t"), problem(409, ""), bundle(BODY.length, "t"), OK, problem(403, ""))) {
            f.actor.consume((bundle, headers, body) -> handled.add(bundle), () -> false);
        } catch (Actor.Refused e) {
            check(403, e.status);
        }
        check(List.of("b", "b"), handled);
    }

    static void dequeuesOnce() throws Exception {
        try (Faulty f = new Faulty(OK, problem(404, ""), problem(410, ""))) {
            check(true, f.actor.dequeue("b", false));
            check(false, f.actor.dequeue("b", false));
            check(true, f.actor.dequeue("b", true));
        }
    }
}
