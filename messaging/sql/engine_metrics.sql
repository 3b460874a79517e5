-- Figures for /metrics, all tenants together: (name, label, value). Nothing here reads more than p_most rows of a kind
-- that may be many; how many messages there are in all is the planner's estimate, of the last ANALYZE.
CREATE FUNCTION engine_metrics(p_most integer) RETURNS TABLE (name text, label text, value double precision)
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  SELECT 'messages', found.status, c.reltuples::double precision * found.share
    FROM pg_class c, pg_stats s,
         unnest(s.most_common_vals::text::text[], s.most_common_freqs) AS found (status, share)
    WHERE c.oid = 'messages'::regclass AND c.reltuples > 0 AND s.schemaname = current_schema()
      AND s.tablename = 'messages' AND s.attname = 'status'
  UNION ALL
  SELECT 'messages_open', open.status::text, count(*)::double precision FROM (
    SELECT status FROM messages WHERE status IN ('sending', 'in_doubt') LIMIT p_most) AS open GROUP BY open.status
  UNION ALL
  SELECT 'messages_open', 'queued', count(*)::double precision
    FROM (SELECT 1 FROM messages WHERE status = 'queued' LIMIT p_most) AS queued
  UNION ALL
  SELECT 'oldest_open_event', '', coalesce(extract(epoch FROM clock_timestamp() - min(received_at)), 0)
    FROM (SELECT received_at FROM webhook_events_log WHERE state IN ('received', 'error') LIMIT p_most) AS open
  UNION ALL
  SELECT 'lanes_held', hold, count(*)::double precision FROM lanes, unnest(holds) AS hold GROUP BY hold
  UNION ALL
  SELECT 'lanes_connected', '', count(*)::double precision FROM lanes WHERE connected
  UNION ALL
  SELECT 'lanes_due', '', count(*)::double precision FROM lanes
    WHERE next_at <= clock_timestamp() AND busy_message IS NULL
  UNION ALL
  SELECT 'lanes_busy', '', count(*)::double precision FROM lanes WHERE busy_message IS NOT NULL
  UNION ALL
  SELECT 'cron_age', run.name, extract(epoch FROM clock_timestamp() - run.last)::double precision FROM (
    WITH RECURSIVE names AS (
      (SELECT r.name FROM cron_runs r ORDER BY r.name LIMIT 1)
      UNION ALL
      SELECT (SELECT r.name FROM cron_runs r WHERE r.name > n.name ORDER BY r.name LIMIT 1)
        FROM names n WHERE n.name IS NOT NULL
    ) SELECT n.name, (SELECT max(r.started_at) FROM cron_runs r WHERE r.name = n.name) AS last
      FROM names n WHERE n.name IS NOT NULL) AS run;
END $$;
