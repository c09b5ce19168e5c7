-- Load for `lda serve` with wrk (https://github.com/wg/wrk). Each line of the file $BODIES is the body of a
-- request; they are sent in turn. Prints the number of answers by status, and the latencies.
--
--   BODIES=queries.jsonl wrk -t1 -c16 -d30s -s load.lua http://127.0.0.1:8080/infer

local bodies = {}
for line in io.lines(os.getenv("BODIES")) do
  bodies[#bodies + 1] = line
end

local threads = {}

function setup(thread)
  table.insert(threads, thread)
end

local at = 0
statuses = {}

function request()
  at = at % #bodies + 1
  return wrk.format("POST", nil, { ["content-type"] = "application/json" }, bodies[at])
end

function response(status)
  statuses[status] = (statuses[status] or 0) + 1
end

function done(summary, latency, _)
  local all = {}
  for _, thread in ipairs(threads) do
    for status, count in pairs(thread:get("statuses")) do
      all[status] = (all[status] or 0) + count
    end
  end
  for status, count in pairs(all) do
    print(string.format("%d: %d answers, %.0f/s", status, count, count / summary.duration * 1e6))
  end
  local errors = summary.errors
  print(string.format("sockets failed: %d", errors.connect + errors.read + errors.write + errors.timeout))
  for _, percent in ipairs({ 50, 99, 99.9 }) do
    print(string.format("p%g: %.2f ms", percent, latency:percentile(percent) / 1000))
  end
end
